//! Several processes on one store.

use std::collections::BTreeSet;
use std::time::Duration;

use nuncio_protocol::{TaskId, TaskState};
use nuncio_store::{
    Appended, CallOutcome, CallRecord, Change, Claim, Created, DeadLetter, DeliveryState, Head,
    LeaseChange, LetterChange, Redelivery, SessionAppended, Settlement, StateChange, StateScope,
    StoreError, WebhookId,
};
use tokio::sync::broadcast;

use super::Shared;
use super::owners::task;
use super::sessions::{said, session_of};
use crate::draft::{Draft, at, key, lapsed, lease, scope, webhook};

/// Only so that a change which is never heard of ends the test.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn heads_tell_where_tasks_stand(store: &Shared) {
    let mut draft = Draft::new("ada", "a", 0);
    let mut new = draft.create();
    new.checkpoint = Some("{}".into());
    store.create(new).await.unwrap();
    draft.status(TaskState::Working, 1);
    store.append(draft.append()).await.unwrap();
    let mut other = Draft::new("bob", "b", 0);
    store.create(other.create()).await.unwrap();
    let asked = [
        (scope("ada"), "a".into()),
        (scope("ada"), "b".into()),
        (scope("bob"), "b".into()),
        (scope("bob"), "nobody".into()),
    ];
    let mut heads = store.heads(&asked).await.unwrap();
    heads.sort_by(|(a, _), (b, _)| a.cmp(b));
    let stored = store.load(&scope("ada"), &"a".into()).await.unwrap();
    let ids: Vec<_> = heads.iter().map(|(task, _)| task.as_str()).collect();
    assert_eq!(ids, ["a", "b"], "each once, in its own scope");
    assert_eq!(heads[0].1, stored.unwrap().head);
    assert_eq!((heads[0].1.last, heads[1].1.last), (2, 1));
    assert!(store.heads(&[]).await.unwrap().is_empty());
}

/// The next change of a task that is heard of.
async fn heard(changes: &mut broadcast::Receiver<Change>) -> TaskId {
    loop {
        let change = tokio::time::timeout(PATIENCE, changes.recv()).await;
        match change.expect("never heard of").unwrap() {
            Change::Task(task) => return task,
            // A listener that has only just come.
            Change::Unknown => {}
        }
    }
}

pub(crate) async fn each_hears_of_the_others_appends(stores: &[Shared; 2]) {
    let mut changes = stores.each_ref().map(|store| store.changes().unwrap());
    for (n, store) in stores.iter().enumerate() {
        let mut draft = Draft::new("ada", &format!("of {n}"), 0);
        store.create(draft.create()).await.unwrap();
        for chunk in 0..5 {
            draft.artifact("a", &chunk.to_string());
            store.append(draft.append()).await.unwrap();
        }
    }
    assert_eq!(heard(&mut changes[0]).await.as_str(), "of 1");
    assert_eq!(heard(&mut changes[1]).await.as_str(), "of 0");
    // What is heard is stored.
    let mut draft = Draft::new("ada", "last", 0);
    stores[0].create(draft.create()).await.unwrap();
    stores[0].append(draft.complete(1)).await.unwrap();
    while heard(&mut changes[1]).await.as_str() != "last" {}
    let heads = stores[1].heads(&[(scope("ada"), draft.id())]).await;
    let (_, Head { last, state, .. }) = heads.unwrap().remove(0);
    assert_eq!((last, state), (3, TaskState::Completed));
}

/// An owner that has lost a run learns of it.
pub(crate) async fn a_claim_is_heard_of(stores: &[Shared; 2]) {
    let mut changes = stores[0].changes().unwrap();
    let new = Draft::new("ada", "t", 0).create_lapsed();
    stores[0].create(new).await.unwrap();
    let claimed = stores[1].claim_expired(lease("second"), Claim::Expired, 9);
    assert_eq!(claimed.await.unwrap().len(), 1);
    assert_eq!(heard(&mut changes).await.as_str(), "t");
}

/// Who writes to a task learns that its events are to be told from now on.
pub(crate) async fn a_webhook_is_heard_of(stores: &[Shared; 2]) {
    let mut changes = stores[0].changes().unwrap();
    for task in ["other", "t"] {
        let new = Draft::new("ada", task, 0).create();
        stores[0].create(new).await.unwrap();
    }
    let hook = webhook("t".into(), "a", "https://one.example/");
    for (caller, put) in [("bob", false), ("ada", true)] {
        let scope = scope(caller);
        let stored = stores[1].put_push_config(&scope, &hook).await;
        assert_eq!(stored.unwrap(), put);
    }
    assert_eq!(heard(&mut changes).await.as_str(), "t");
}

/// R02: no wait between a commit and its reading anywhere else.
pub(crate) async fn a_created_task_is_seen_at_once(stores: &[Shared; 2]) {
    for n in 0..50 {
        let mut draft = Draft::new("ada", &format!("t{n}"), n);
        stores[0].create(draft.create()).await.unwrap();
        let seen = stores[1].load(&draft.scope, &draft.id()).await.unwrap();
        assert_eq!(*seen.unwrap().task, draft.task);
        stores[1].append(draft.complete(n + 1)).await.unwrap();
        let seen = stores[0].load(&draft.scope, &draft.id()).await.unwrap();
        assert_eq!(*seen.unwrap().task, draft.task);
    }
}

pub(crate) async fn a_key_is_new_on_one_of_two(stores: &[Shared; 2]) {
    for round in 0..100 {
        let creates = [0, 1, 2, 3].map(|n| {
            let mut new = Draft::new("ada", &format!("{round} {n}"), 0).create();
            new.idempotency = Some(key(&format!("key {round}"), 1));
            let store = stores[n % 2].clone();
            tokio::spawn(async move { store.create(new).await.unwrap() })
        });
        let mut tasks = BTreeSet::new();
        let mut new = 0;
        for create in creates {
            match create.await.unwrap() {
                Created::New => new += 1,
                Created::Existing { task, same_request } => {
                    assert!(same_request);
                    tasks.insert(task);
                }
            }
        }
        assert_eq!((new, tasks.len()), (1, 1), "round {round}");
    }
    let (ada, all) = (scope("ada"), Default::default());
    let page = stores[0].list(&ada, &all, None, 1).await.unwrap();
    assert_eq!(page.total, 100);
}

/// R10: one writer per position, whichever process it is in.
pub(crate) async fn one_of_two_replicas_appends(stores: &[Shared; 2]) {
    let mut draft = Draft::new("ada", "t", 0);
    stores[0].create(draft.create()).await.unwrap();
    for round in 0..200 {
        let append = draft.artifact("a", &round.to_string()).append();
        let appends = stores.clone().map(|store| {
            let append = append.clone();
            tokio::spawn(async move { store.append(append).await.unwrap() })
        });
        let mut won = 0;
        for append in appends {
            won += u32::from(matches!(append.await.unwrap(), Appended::Done { .. }));
        }
        assert_eq!(won, 1, "round {round}");
    }
    let stored = stores[1].load(&draft.scope, &draft.id()).await.unwrap();
    assert_eq!(*stored.unwrap().task, draft.task);
}

pub(crate) async fn each_run_is_claimed_by_one(stores: &[Shared; 2]) {
    for round in 0..10 {
        for n in 0..20 {
            let new = Draft::new("ada", &format!("{round} {n}"), 0).create_lapsed();
            stores[n % 2].create(new).await.unwrap();
        }
        let claims = [0, 1, 2, 3].map(|n| {
            let (store, owner) = (stores[n % 2].clone(), format!("owner {n}"));
            tokio::spawn(async move {
                let mut claimed = Vec::new();
                loop {
                    let some = store.claim_expired(lease(&owner), Claim::Expired, 3);
                    let some = some.await.unwrap();
                    if some.is_empty() {
                        return claimed;
                    }
                    claimed.extend(some.into_iter().map(|run| run.stored));
                }
            })
        });
        let mut runs = Vec::new();
        for claim in claims {
            for stored in claim.await.unwrap() {
                assert_eq!((stored.head.epoch, stored.head.attempt), (2, 2));
                runs.push(stored.task.id.clone());
            }
        }
        let distinct: BTreeSet<_> = runs.iter().collect();
        assert_eq!((runs.len(), distinct.len()), (20, 20), "round {round}");
    }
}

/// BR-184: a task that waits is woken once, whoever answers where.
pub(crate) async fn one_of_two_answers_begins_a_run(stores: &[Shared; 2]) {
    for round in 0..100 {
        let mut draft = Draft::new("ada", &format!("t{round}"), 0);
        stores[0].create(draft.create()).await.unwrap();
        let asks = draft.status(TaskState::InputRequired, 1).append();
        stores[0].append(asks).await.unwrap();
        let mut answer = draft.message("yes").status(TaskState::Working, 2).append();
        answer.turn = Some(answer.after + 1);
        let answers = [0, 1].map(|n| {
            let mut answer = answer.clone();
            answer.lease = LeaseChange::Take(lapsed(&format!("owner {n}")));
            let store = stores[n].clone();
            tokio::spawn(async move { store.append(answer).await.unwrap() })
        });
        let mut begun = 0;
        for answer in answers {
            match answer.await.unwrap() {
                Appended::Done { epoch } => begun += epoch - 1,
                Appended::Conflict(head) => assert_eq!((head.epoch, head.last), (2, 4)),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(begun, 1, "round {round}");
    }
}

/// A task of one event with a webhook.
async fn hooked(store: &Shared, task: &str) -> WebhookId {
    let new = Draft::new("ada", task, 0).create();
    store.create(new).await.unwrap();
    let hook = webhook(task.into(), "a", "https://one.example/");
    assert!(store.put_push_config(&scope("ada"), &hook).await.unwrap());
    WebhookId {
        task: task.into(),
        config: "a".into(),
    }
}

fn settlement(webhook: &WebhookId, owner: Option<&str>, cursor: u64) -> Settlement {
    Settlement {
        webhook: webhook.clone(),
        owner: owner.map(Into::into),
        cursor,
        state: DeliveryState::default(),
        letter: LetterChange::Keep,
    }
}

/// P6: whether nobody has claimed a webhook yet or its claim is over, one of four gets it.
pub(crate) async fn each_webhook_is_claimed_by_one(stores: &[Shared; 2]) {
    let long = Duration::from_secs(600);
    for round in 0..60 {
        let webhook = hooked(&stores[0], &format!("t{round}")).await;
        if round % 2 == 0 {
            let lapsed = stores[0].claim_delivery(&webhook, "dead", Duration::ZERO);
            assert!(lapsed.await.unwrap());
        }
        let claims = [0, 1, 2, 3].map(|n| {
            let (store, webhook) = (stores[n % 2].clone(), webhook.clone());
            tokio::spawn(async move {
                let owner = format!("owner {n}");
                store.claim_delivery(&webhook, &owner, long).await.unwrap()
            })
        });
        let mut owners = Vec::new();
        for (n, claim) in claims.into_iter().enumerate() {
            if claim.await.unwrap() {
                owners.push(format!("owner {n}"));
            }
        }
        assert_eq!(owners.len(), 1, "round {round}: {owners:?}");
        let store = &stores[round % 2];
        let again = store.claim_delivery(&webhook, &owners[0], long);
        assert!(again.await.unwrap(), "prolonged from wherever");
    }
}

/// P6: whoever has lost its claim, and does not know, moves no cursor.
pub(crate) async fn a_lost_claim_writes_nothing_more(stores: &[Shared; 2]) {
    let webhook = hooked(&stores[0], "t").await;
    let long = Duration::from_secs(600);
    let claim = async |n: usize, owner: &str, term| {
        let claimed = stores[n].claim_delivery(&webhook, owner, term);
        claimed.await.unwrap()
    };
    let settle = async |n: usize, owner: &str, cursor| {
        let settled = stores[n].settle_delivery(settlement(&webhook, Some(owner), cursor));
        settled.await.unwrap()
    };
    assert!(claim(0, "slow", Duration::ZERO).await);
    assert!(!settle(0, "slow", 3).await, "over, if nobody else has it");
    assert!(claim(1, "quick", long).await);
    assert!(!claim(0, "slow", long).await);
    assert!(!settle(0, "slow", 3).await);
    assert!(settle(1, "quick", 2).await);
    let row = stores[0].delivery(&webhook).await.unwrap().unwrap();
    assert_eq!(row.cursor, 2);
    let released = stores[0].release_deliveries(None, "slow");
    released.await.unwrap();
    assert!(!claim(0, "slow", long).await, "another one's stays");
}

/// Whatever is done to a webhook from all sides at once, nothing waits in a circle or fails.
pub(crate) async fn many_hands_at_one_webhook(stores: &[Shared; 2]) {
    let webhooks = [hooked(&stores[0], "t").await, hooked(&stores[0], "u").await];
    let hands = [0, 1, 2, 3, 4, 5, 6, 7].map(|n| {
        let (store, webhooks) = (stores[n % 2].clone(), webhooks.clone());
        tokio::spawn(async move {
            for round in 0..40_u64 {
                meddle(&store, &webhooks, n, round).await.unwrap();
            }
        })
    });
    for hand in hands {
        hand.await.unwrap();
    }
    for webhook in &webhooks {
        let row = stores[1].delivery(webhook).await.unwrap().unwrap();
        assert_eq!(row.cursor, 39);
    }
}

/// One of the things that are done to webhooks, by who does it.
async fn meddle(
    store: &Shared,
    webhooks: &[WebhookId; 2],
    hand: usize,
    round: u64,
) -> Result<(), StoreError> {
    let one = &webhooks[(hand / 2 + round as usize) % 2];
    match hand / 2 {
        0 => {
            let mut put = settlement(one, None, round);
            put.state.attempts = 1;
            put.letter = LetterChange::Put(DeadLetter {
                position: round % 5,
                given_up: at(1),
                attempts: 1,
                cause: "500".to_owned(),
                requested: false,
            });
            store.settle_delivery(put).await?;
            let other = webhooks.iter().find(|webhook| *webhook != one).unwrap();
            store
                .settle_delivery(settlement(other, None, round))
                .await?;
        }
        1 => {
            let which = Redelivery {
                webhook: round.is_multiple_of(2).then(|| one.clone()),
                ..Redelivery::default()
            };
            store.redeliver(&which).await?;
        }
        2 => {
            let hook = webhook(one.task.clone(), "a", &format!("https://{round}.example/"));
            store.put_push_config(&scope("ada"), &hook).await?;
            let mut remove = settlement(one, None, 0);
            remove.letter = LetterChange::Remove(round % 5);
            store.settle_delivery(remove).await?;
        }
        _ => {
            let call = |webhook: &WebhookId| CallRecord {
                webhook: webhook.clone(),
                first: round,
                last: round,
                message_id: format!("{}.{round}", webhook.task),
                attempt: 1,
                at: at(round as i64),
                took: Duration::ZERO,
                outcome: CallOutcome::Broken,
            };
            let mut calls: Vec<CallRecord> = webhooks.iter().map(call).collect();
            if round.is_multiple_of(2) {
                calls.reverse();
            }
            store.record_calls(calls, 2).await?;
            store.prune_calls(at(round as i64 - 1), 3).await?;
        }
    }
    Ok(())
}

pub(crate) async fn closing_one_leaves_the_other_open(stores: &[Shared; 2]) {
    let mut draft = Draft::new("ada", "t", 0);
    stores[0].create(draft.create()).await.unwrap();
    stores[0].close().await.unwrap();
    let closed = stores[0].append(draft.complete(1)).await;
    assert!(matches!(closed, Err(StoreError::Closed)));
    stores[1].ping().await.unwrap();
    let stored = stores[1].load(&scope("ada"), &draft.id()).await.unwrap();
    assert_eq!(stored.unwrap().head.last, 1);
}

/// Of two processes at one session each entry is of one, and both see all of them.
pub(crate) async fn one_of_two_replicas_has_the_next_entry(stores: &[Shared; 2]) {
    let key = session_of("ada", "c");
    for round in 0..100 {
        let writers = [0, 1].map(|n: usize| {
            let (store, one) = (stores[n].clone(), said(&key, round, &[&n.to_string()]));
            tokio::spawn(async move { store.append_session(one).await.unwrap() })
        });
        let mut won = 0;
        for writer in writers {
            match writer.await.unwrap() {
                SessionAppended::Done { .. } => won += 1,
                SessionAppended::Conflict { last } => assert_eq!(last, round + 1),
            }
        }
        assert_eq!(won, 1, "round {round}");
    }
    for store in stores {
        let entries = store.session(&key, 0, 999).await.unwrap();
        assert!(entries.iter().map(|entry| entry.position).eq(1..=100));
    }
}

/// State that is shared by many sessions is written from all of them without anybody in the way of
/// another.
pub(crate) async fn many_hands_at_the_state_of_one_caller(stores: &[Shared; 2]) {
    let writers: Vec<_> = (0..8)
        .map(|writer: usize| {
            let store = stores[writer % 2].clone();
            tokio::spawn(async move {
                let key = session_of("ada", &format!("c{writer}"));
                for round in 0..25 {
                    let mut one = said(&key, round, &["x"]);
                    for n in 0..6 {
                        // Each in an order of its own.
                        let n = if writer.is_multiple_of(3) { 5 - n } else { n };
                        let scope = [StateScope::Agent, StateScope::Caller][n % 2];
                        one.state.push(StateChange {
                            scope,
                            name: format!("n{n}").into(),
                            value: Some(writer.to_string().into()),
                        });
                    }
                    let done = store.append_session(one).await.unwrap();
                    assert_eq!(done, SessionAppended::Done { last: round + 1 });
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let states = stores[0].state(&session_of("ada", "c0")).await.unwrap();
    assert_eq!(states.len(), 6);
}

/// Each id is taken by one of two callers, and nobody waits for ever for the other.
pub(crate) async fn many_hands_at_what_is_to_be_taken(stores: &[Shared; 2]) {
    let takers: Vec<_> = (0..8)
        .map(|taker: usize| {
            let store = stores[taker % 2].clone();
            tokio::spawn(async move {
                let scope = scope(["ada", "bob"][taker / 2 % 2]);
                let mut taken = 0;
                for round in 0..25 {
                    // Each in an order of its own.
                    let mut ids = [0, 1, 2].map(|n| task(&format!("{round}-{n}")));
                    if taker.is_multiple_of(3) {
                        ids.reverse();
                    }
                    taken += usize::from(store.take(&scope, &ids, at(round)).await.unwrap());
                }
                taken
            })
        })
        .collect();
    let mut taken = 0;
    for taker in takers {
        taken += taker.await.unwrap();
    }
    assert_eq!(
        taken,
        25 * 4,
        "all of one caller's tries, none of the other's"
    );
    let [adas, bobs] = ["ada", "bob"].map(scope);
    let adas = stores[0].owned_tasks(&adas).await.unwrap();
    let bobs = stores[1].owned_tasks(&bobs).await.unwrap();
    assert_eq!(adas + bobs, 25 * 3);
}
