//! Deliveries to webhooks: state, claims, dead letters, log of calls.

use std::time::Duration;

use nuncio_store::{
    CallOutcome, CallRecord, DeadLetter, Delivery, DeliveryFilter, DeliveryState, Disabled,
    LetterChange, Redelivery, Settlement, WebhookId,
};

use super::Shared;
use crate::draft::{Draft, at, scope, webhook};

fn id(task: &str, config: &str) -> WebhookId {
    WebhookId {
        task: task.into(),
        config: config.into(),
    }
}

/// A task of two events with webhooks of these names.
async fn task(store: &Shared, task: &str, hooks: &[&str]) {
    let new = Draft::new("ada", task, 0).create();
    store.create(new).await.unwrap();
    for hook in hooks {
        let webhook = webhook(task.into(), hook, "https://one.example/");
        assert!(
            store
                .put_push_config(&scope("ada"), &webhook)
                .await
                .unwrap()
        );
    }
}

fn failing() -> DeliveryState {
    DeliveryState {
        attempts: 3,
        refusals: 1,
        upto: 7,
        failing_for: Duration::from_millis(1_500),
        down_for: Duration::from_secs(90_000),
        failing_since: Some(at(1)),
        last_call: Some(at(2)),
        next_call: Some(at(3)),
        disabled: None,
    }
}

fn letter(position: u64, ms: i64) -> DeadLetter {
    DeadLetter {
        position,
        given_up: at(ms),
        attempts: 5,
        cause: "500".to_owned(),
        requested: false,
    }
}

fn settlement(webhook: WebhookId, cursor: u64) -> Settlement {
    Settlement {
        webhook,
        owner: None,
        cursor,
        state: DeliveryState::default(),
        letter: LetterChange::Keep,
    }
}

async fn put_letter(store: &Shared, webhook: &WebhookId, letter: DeadLetter) {
    let mut put = settlement(webhook.clone(), letter.position);
    put.letter = LetterChange::Put(letter);
    assert!(store.settle_delivery(put).await.unwrap());
}

async fn delivery(store: &Shared, webhook: &WebhookId) -> Delivery {
    store.delivery(webhook).await.unwrap().unwrap()
}

async fn positions(store: &Shared, webhook: &WebhookId, requested: bool) -> Vec<u64> {
    let letters = store.dead_letters(webhook, requested, 99).await.unwrap();
    letters.iter().map(|letter| letter.position).collect()
}

pub(crate) async fn a_state_is_kept_as_it_was_noted(store: &Shared) {
    task(store, "t", &["a", "b"]).await;
    let a = id("t", "a");
    let fresh = delivery(store, &a).await;
    assert_eq!(
        (fresh.scope.clone(), fresh.id(), fresh.cursor, fresh.last),
        (scope("ada"), a.clone(), 1, 1)
    );
    assert_eq!(fresh.state, DeliveryState::default());
    for disabled in [None, Some(Disabled::Gone), Some(Disabled::Failing)] {
        let mut noted = settlement(a.clone(), 0);
        noted.state = failing();
        noted.state.disabled = disabled;
        assert!(store.settle_delivery(noted.clone()).await.unwrap());
        let kept = delivery(store, &a).await;
        assert_eq!((kept.state, kept.cursor), (noted.state, 1));
    }
    let other = delivery(store, &id("t", "b")).await;
    assert_eq!(other.state, DeliveryState::default());
    store
        .settle_delivery(settlement(a.clone(), 9))
        .await
        .unwrap();
    let done = delivery(store, &a).await;
    assert_eq!((done.state, done.cursor), (DeliveryState::default(), 9));
    let nobody = id("t", "nobody");
    assert!(
        store
            .settle_delivery(settlement(nobody.clone(), 3))
            .await
            .unwrap()
    );
    assert!(store.delivery(&nobody).await.unwrap().is_none());
}

pub(crate) async fn a_replaced_webhook_begins_anew_and_keeps_its_letters(store: &Shared) {
    task(store, "t", &["a"]).await;
    let a = id("t", "a");
    put_letter(store, &a, letter(1, 5)).await;
    let mut noted = settlement(a.clone(), 1);
    noted.state = failing();
    noted.state.disabled = Some(Disabled::Gone);
    store.settle_delivery(noted).await.unwrap();
    let changed = webhook("t".into(), "a", "https://two.example/");
    store
        .put_push_config(&scope("ada"), &changed)
        .await
        .unwrap();
    let kept = delivery(store, &a).await;
    assert_eq!((kept.state, kept.dead), (DeliveryState::default(), 1));
    assert_eq!(kept.webhook, changed);

    store
        .delete_push_config(&scope("ada"), &a.task, &a.config)
        .await
        .unwrap();
    assert!(store.delivery(&a).await.unwrap().is_none());
    store
        .put_push_config(&scope("ada"), &changed)
        .await
        .unwrap();
    assert_eq!(delivery(store, &a).await.dead, 0, "gone with the webhook");
}

/// A message that brings a webhook along replaces the one of that id, too.
pub(crate) async fn a_webhook_replaced_with_a_message_begins_anew(store: &Shared) {
    let mut draft = Draft::new("ada", "t", 0);
    store.create(draft.create()).await.unwrap();
    let hook = webhook("t".into(), "a", "https://one.example/");
    store.put_push_config(&draft.scope, &hook).await.unwrap();
    let a = id("t", "a");
    let mut noted = settlement(a.clone(), 1);
    noted.state = failing();
    noted.state.disabled = Some(Disabled::Failing);
    store.settle_delivery(noted).await.unwrap();
    let moved = store.advance_push_cursor(&a.task, &a.config, 2);
    moved.await.unwrap();
    let row = delivery(store, &a).await;
    assert!(
        row.state.disabled.is_some(),
        "a cursor that moves says nothing"
    );
    let mut again = draft.message("again").append();
    again.push_config = Some(webhook("t".into(), "a", "https://two.example/"));
    store.append(again.clone()).await.unwrap();
    let row = delivery(store, &a).await;
    assert_eq!(row.state, DeliveryState::default());
    assert_eq!(Some(row.webhook), again.push_config);
}

/// What goes with a webhook does not come back with the next one of its id.
pub(crate) async fn a_deleted_webhook_leaves_nothing(store: &Shared) {
    task(store, "t", &["a", "b"]).await;
    let (a, b) = (id("t", "a"), id("t", "b"));
    for webhook in [&a, &b] {
        put_letter(store, webhook, letter(1, 5)).await;
        let calls = vec![call(webhook, 1, CallOutcome::Broken)];
        store.record_calls(calls, 9).await.unwrap();
        let mut noted = settlement(webhook.clone(), 0);
        noted.state = failing();
        store.settle_delivery(noted).await.unwrap();
    }
    let ada = scope("ada");
    let deleted = store.delete_push_config(&ada, &a.task, &a.config);
    assert!(deleted.await.unwrap());
    let again = webhook("t".into(), "a", "https://one.example/");
    store.put_push_config(&ada, &again).await.unwrap();
    let known = async |webhook: &WebhookId| {
        let row = delivery(store, webhook).await;
        let calls = store.calls(webhook, 9).await.unwrap().len();
        (row.state, row.dead, calls)
    };
    assert_eq!(known(&a).await, (DeliveryState::default(), 0, 0));
    assert_eq!(known(&b).await, (failing(), 1, 1), "another webhook");
}

/// Ids of webhooks are made up by callers, and may hold what they like.
pub(crate) async fn webhooks_of_any_id_are_told_apart(store: &Shared) {
    let ids = ["a\0b", "\u{ffff}0", "'\"\\{},", "%_", ""];
    task(store, "t", &ids).await;
    let long = Duration::from_secs(600);
    for (text, position) in ids.into_iter().zip(1..) {
        let webhook = id("t", text);
        let row = delivery(store, &webhook).await;
        assert_eq!(row.id(), webhook);
        assert!(store.claim_delivery(&webhook, "one", long).await.unwrap());
        let mut put = settlement(webhook.clone(), position);
        put.owner = Some("one".into());
        put.letter = LetterChange::Put(letter(position, 5));
        assert!(store.settle_delivery(put).await.unwrap());
        let calls = vec![call(&webhook, position, CallOutcome::Broken)];
        store.record_calls(calls.clone(), 9).await.unwrap();
        assert_eq!(store.calls(&webhook, 9).await.unwrap(), calls);
        let which = Redelivery {
            webhook: Some(webhook.clone()),
            ..Redelivery::default()
        };
        assert_eq!(store.redeliver(&which).await.unwrap(), 1);
        assert_eq!(positions(store, &webhook, true).await, [position]);
    }
}

pub(crate) async fn disabled_webhooks_are_not_behind(store: &Shared) {
    let mut draft = Draft::new("ada", "t", 0);
    let mut new = draft.create();
    new.push_config = Some(webhook("t".into(), "a", "https://one.example/"));
    store.create(new).await.unwrap();
    assert_eq!(store.push_backlog(None, 9).await.unwrap().len(), 1);
    let mut noted = settlement(id("t", "a"), 0);
    noted.state.disabled = Some(Disabled::Failing);
    store.settle_delivery(noted).await.unwrap();
    assert!(store.push_backlog(None, 9).await.unwrap().is_empty());
}

pub(crate) async fn dead_letters_are_delivered_again_on_demand(store: &Shared) {
    task(store, "t", &["a", "b"]).await;
    task(store, "u", &["a"]).await;
    let (a, b, other) = (id("t", "a"), id("t", "b"), id("u", "a"));
    for (webhook, position, ms) in [(&a, 1, 10), (&a, 3, 30), (&a, 2, 20), (&other, 1, 25)] {
        put_letter(store, webhook, letter(position, ms)).await;
    }
    put_letter(store, &b, letter(1, 5)).await;
    assert_eq!(positions(store, &a, false).await, [1, 2, 3]);
    assert_eq!(store.dead_letters(&a, false, 2).await.unwrap().len(), 2);
    assert!(positions(store, &a, true).await.is_empty());
    assert!(store.push_backlog(None, 9).await.unwrap().is_empty());

    let mut which = Redelivery {
        webhook: Some(a.clone()),
        position: Some(2),
        since: None,
    };
    assert_eq!(store.redeliver(&which).await.unwrap(), 1);
    assert_eq!(positions(store, &a, true).await, [2]);
    let behind = store.push_backlog(None, 9).await.unwrap();
    assert_eq!(behind, [(scope("ada"), "t".into())]);
    let row = delivery(store, &a).await;
    assert_eq!((row.dead, row.requested), (3, 1));
    which.position = Some(9);
    assert_eq!(store.redeliver(&which).await.unwrap(), 0);

    let since = Redelivery {
        since: Some(at(20)),
        ..Redelivery::default()
    };
    assert_eq!(store.redeliver(&since).await.unwrap(), 3);
    assert_eq!(positions(store, &a, true).await, [2, 3]);
    assert_eq!(positions(store, &other, true).await, [1]);
    assert!(positions(store, &b, true).await.is_empty());

    let mut taken = settlement(a.clone(), 0);
    taken.letter = LetterChange::Remove(2);
    store.settle_delivery(taken).await.unwrap();
    put_letter(store, &a, letter(3, 99)).await;
    assert_eq!(positions(store, &a, false).await, [1, 3]);
    assert!(positions(store, &a, true).await.is_empty(), "put back");
    let all = Redelivery {
        webhook: Some(a.clone()),
        ..Redelivery::default()
    };
    let mut noted = settlement(a.clone(), 0);
    noted.state.disabled = Some(Disabled::Gone);
    store.settle_delivery(noted).await.unwrap();
    assert_eq!(store.redeliver(&all).await.unwrap(), 2);
    assert_eq!(delivery(store, &a).await.state, DeliveryState::default());
}

pub(crate) async fn webhooks_are_listed_by_pages(store: &Shared) {
    for name in ["t", "u"] {
        task(store, name, &["b", "a"]).await;
    }
    let all = DeliveryFilter::default();
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = store.deliveries(&all, after.as_ref(), 3).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.id());
        seen.extend(page.iter().map(Delivery::id));
    }
    let expected = [id("t", "a"), id("t", "b"), id("u", "a"), id("u", "b")];
    assert_eq!(seen, expected);
    let one = DeliveryFilter {
        task: Some("u".into()),
        in_trouble: false,
    };
    assert_eq!(store.deliveries(&one, None, 9).await.unwrap().len(), 2);

    put_letter(store, &expected[0], letter(1, 1)).await;
    let mut noted = settlement(expected[3].clone(), 0);
    noted.state = failing();
    store.settle_delivery(noted).await.unwrap();
    let trouble = DeliveryFilter {
        task: None,
        in_trouble: true,
    };
    let found = store.deliveries(&trouble, None, 9).await.unwrap();
    let found: Vec<WebhookId> = found.iter().map(Delivery::id).collect();
    assert_eq!(found, [expected[0].clone(), expected[3].clone()]);
}

pub(crate) async fn one_at_a_time_has_a_webhook(store: &Shared) {
    task(store, "t", &["a", "b"]).await;
    let (a, b) = (id("t", "a"), id("t", "b"));
    let long = Duration::from_secs(600);
    let claim = async |webhook: &WebhookId, owner: &str, term| {
        store.claim_delivery(webhook, owner, term).await.unwrap()
    };
    assert!(claim(&a, "one", long).await);
    assert!(claim(&a, "one", long).await, "prolonged");
    assert!(!claim(&a, "two", long).await);
    assert!(claim(&b, "two", long).await, "another webhook");

    let mut noted = settlement(a.clone(), 5);
    noted.state = failing();
    noted.owner = Some("two".into());
    assert!(!store.settle_delivery(noted.clone()).await.unwrap());
    let untouched = delivery(store, &a).await;
    assert_eq!(
        (untouched.cursor, untouched.state),
        (1, DeliveryState::default())
    );
    noted.owner = Some("one".into());
    assert!(store.settle_delivery(noted).await.unwrap());

    store.release_deliveries(Some(&a), "two").await.unwrap();
    assert!(!claim(&a, "two", long).await, "not theirs to give up");
    store.release_deliveries(Some(&a), "one").await.unwrap();
    assert!(claim(&a, "two", long).await);
    store.release_deliveries(None, "two").await.unwrap();
    assert!(claim(&a, "one", long).await && claim(&b, "one", long).await);

    // A process that died loses its claims after the term.
    store.release_deliveries(None, "one").await.unwrap();
    assert!(claim(&a, "dead", Duration::from_millis(20)).await);
    while !claim(&a, "one", long).await {
        tokio::task::yield_now().await;
    }
    assert!(!claim(&a, "dead", long).await);
}

fn call(webhook: &WebhookId, position: u64, outcome: CallOutcome) -> CallRecord {
    CallRecord {
        webhook: webhook.clone(),
        first: position,
        last: position + 1,
        message_id: format!("t.{position}"),
        attempt: 2,
        at: at(i64::try_from(position).unwrap() * 10),
        took: Duration::from_millis(15),
        outcome,
    }
}

pub(crate) async fn calls_are_logged_within_bounds(store: &Shared) {
    task(store, "t", &["a", "b"]).await;
    let (a, b) = (id("t", "a"), id("t", "b"));
    let outcomes = [
        CallOutcome::Answered(200),
        CallOutcome::Forbidden,
        CallOutcome::Unreachable,
        CallOutcome::TimedOut,
        CallOutcome::Broken,
        CallOutcome::Unsendable,
    ];
    let calls: Vec<CallRecord> = outcomes
        .iter()
        .zip(1..)
        .map(|(outcome, position)| call(&a, position, *outcome))
        .collect();
    store.record_calls(calls.clone(), 9).await.unwrap();
    let mut newest_first = calls.clone();
    newest_first.reverse();
    assert_eq!(store.calls(&a, 9).await.unwrap(), newest_first);
    assert_eq!(store.calls(&a, 2).await.unwrap(), newest_first[..2]);
    assert!(store.calls(&b, 9).await.unwrap().is_empty());

    let more = vec![
        call(&a, 7, CallOutcome::Answered(500)),
        call(&b, 1, CallOutcome::Broken),
        call(&id("t", "nobody"), 1, CallOutcome::Broken),
    ];
    store.record_calls(more, 3).await.unwrap();
    let firsts = async |webhook: &WebhookId| -> Vec<u64> {
        let calls = store.calls(webhook, 9).await.unwrap();
        calls.iter().map(|call| call.first).collect()
    };
    assert_eq!(firsts(&a).await, [7, 6, 5], "the newest three");
    assert_eq!(store.prune_calls(at(60), 1).await.unwrap(), 1);
    assert_eq!(store.prune_calls(at(60), 9).await.unwrap(), 1);
    assert_eq!((firsts(&a).await, firsts(&b).await), (vec![7, 6], vec![]));
}
