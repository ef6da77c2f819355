//! Creating, appending, reading back.

use nuncio_protocol::{Event, StreamResponse, Task, TaskId, TaskState};
use nuncio_store::{Appended, Created, LeaseChange, StoreError};

use super::Shared;
use crate::draft::{Draft, at, key, lease, scope, webhook};

pub(crate) async fn a_created_task_is_loaded_as_it_was_written(store: &Shared) {
    let mut draft = Draft::new("ada", "t", 5);
    draft.status(TaskState::Working, 6).artifact("a", "one");
    let mut new = draft.create();
    new.checkpoint = Some("{}".into());
    assert_eq!(store.create(new).await.unwrap(), Created::New);
    let stored = store
        .load(&draft.scope, &draft.id())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(*stored.task, draft.task);
    assert_eq!(stored.scope, draft.scope);
    let head = &stored.head;
    assert_eq!(head.checkpoint.as_deref(), Some("{}"));
    assert_eq!((head.last, head.state), (3, TaskState::Working));
    assert_eq!((head.epoch, head.turn), (1, 1));
    assert_eq!(head.owner.as_deref(), Some("process"));

    draft.artifact("a", "two");
    let done = store.append(draft.append()).await.unwrap();
    assert_eq!(done, Appended::Done { epoch: 1 });
    store.append(draft.complete(9)).await.unwrap();
    let stored = store
        .load(&draft.scope, &draft.id())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(*stored.task, draft.task);
    assert_eq!(stored.head.last, draft.log.len() as u64);
    assert_eq!(stored.head.owner, None);

    let mut rested = Draft::new("ada", "rested", 7);
    rested.status(TaskState::Completed, 8);
    store.create(rested.create()).await.unwrap();
    let stored = store.load(&rested.scope, &rested.id()).await.unwrap();
    let stored = stored.unwrap();
    assert_eq!(
        (Task::clone(&stored.task), stored.head.epoch),
        (rested.task, 0)
    );
}

pub(crate) async fn broken_input_is_refused(store: &Shared) {
    let mut headless = Draft::new("ada", "t", 0);
    let mut new = headless.create();
    new.events = vec![Event::new(Some(2), new.events[0].response().clone())];
    assert!(matches!(
        store.create(new).await,
        Err(StoreError::Corrupt(_))
    ));
    let mut draft = Draft::new("ada", "t", 0);
    store.create(draft.create()).await.unwrap();
    let again = store.create(Draft::new("ada", "t", 0).create()).await;
    assert!(
        matches!(again, Err(StoreError::Corrupt(_))),
        "one id, one task"
    );

    draft.status(TaskState::Working, 1);
    let good = draft.append();
    let mut gap = good.clone();
    gap.events = vec![Event::new(Some(3), good.events[0].response().clone())];
    let mut lie = good.clone();
    lie.state = TaskState::Completed;
    let mut silent = good.clone();
    silent.events.clear();
    for broken in [gap, lie, silent] {
        assert!(matches!(
            store.append(broken).await,
            Err(StoreError::Corrupt(_))
        ));
    }
    assert!(matches!(
        store.append(good).await.unwrap(),
        Appended::Done { .. }
    ));
    draft
        .log
        .push(Event::new(Some(3), draft.log[0].response().clone()));
    let mut back = draft.append();
    back.state = TaskState::Submitted;
    assert!(matches!(
        store.append(back).await,
        Err(StoreError::Corrupt(_))
    ));
}

pub(crate) async fn a_key_is_used_once(store: &Shared) {
    let mut draft = Draft::new("ada", "first", 0);
    let mut new = draft.create();
    new.idempotency = Some(key("k", 1));
    assert_eq!(store.create(new).await.unwrap(), Created::New);
    for (request, same_request) in [(1, true), (2, false)] {
        let mut again = Draft::new("ada", "second", 1).create();
        again.idempotency = Some(key("k", request));
        let task = TaskId::from("first");
        assert_eq!(
            store.create(again).await.unwrap(),
            Created::Existing { task, same_request }
        );
    }
    let second = store.load(&draft.scope, &"second".into()).await.unwrap();
    assert!(second.is_none(), "nothing was written");
    let found = store.find_key(&draft.scope, "k").await.unwrap();
    assert_eq!(found, Some((draft.id(), [1; 32])));
    let other = store.find_key(&draft.scope, "other").await.unwrap();
    assert_eq!(other, None);
}

pub(crate) async fn a_key_belongs_to_its_scope(store: &Shared) {
    let mut elsewhere = scope("ada");
    elsewhere.agent = "other".into();
    let mut away = scope("ada");
    away.workspace = "other".into();
    let scopes = [scope("ada"), scope("bob"), elsewhere, away];
    for (n, scope) in scopes.iter().enumerate() {
        let mut draft = Draft::new("ada", &format!("t{n}"), 0);
        draft.scope = scope.clone();
        let mut new = draft.create();
        new.idempotency = Some(key("k", n as u8));
        assert_eq!(store.create(new).await.unwrap(), Created::New);
    }
    for (n, scope) in scopes.iter().enumerate() {
        let found = store.find_key(scope, "k").await.unwrap();
        assert_eq!(found, Some((format!("t{n}").into(), [n as u8; 32])));
    }
}

pub(crate) async fn a_key_of_an_append_is_found(store: &Shared) {
    let mut draft = Draft::new("ada", "t", 0);
    store.create(draft.create()).await.unwrap();
    draft.message("more");
    let mut append = draft.append();
    append.idempotency = Some(key("k", 1));
    let done = store.append(append.clone()).await.unwrap();
    assert_eq!(done, Appended::Done { epoch: 1 });
    let existing = |same_request| Appended::Existing {
        task: "t".into(),
        same_request,
    };
    assert_eq!(store.append(append.clone()).await.unwrap(), existing(true));
    append.idempotency = Some(key("k", 2));
    assert_eq!(store.append(append).await.unwrap(), existing(false));
    let mut other = Draft::new("ada", "u", 0).create();
    other.idempotency = Some(key("k", 1));
    assert_eq!(
        store.create(other).await.unwrap(),
        Created::Existing {
            task: "t".into(),
            same_request: true
        }
    );
    let stored = store
        .load(&draft.scope, &draft.id())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (Task::clone(&stored.task), stored.head.last),
        (draft.task, 2)
    );
}

pub(crate) async fn an_append_needs_the_newest_position(store: &Shared) {
    let mut draft = Draft::new("ada", "t", 0);
    store.create(draft.create()).await.unwrap();
    draft.status(TaskState::Working, 1);
    let first = draft.append();
    store.append(first.clone()).await.unwrap();
    let Appended::Conflict(head) = store.append(first).await.unwrap() else {
        panic!("written twice");
    };
    assert_eq!((head.last, head.state), (2, TaskState::Working));
    let mut early = draft.message("too early").append();
    early.after = 3;
    early.events = vec![Event::new(Some(4), early.events[0].response().clone())];
    let early = store.append(early).await.unwrap();
    assert_eq!(early, Appended::Conflict(head));
}

pub(crate) async fn an_append_needs_its_epoch(store: &Shared) {
    let mut draft = Draft::new("ada", "t", 0);
    store.create(draft.create()).await.unwrap();
    for (epoch, fits) in [(0, false), (2, false), (1, true)] {
        let mut append = draft.artifact("a", "x").append();
        append.epoch = Some(epoch);
        let reply = store.append(append).await.unwrap();
        assert_eq!(matches!(reply, Appended::Done { epoch: 1 }), fits);
        if !fits {
            draft.log.pop();
            draft.task.artifacts.clear();
            draft.stored -= 1;
        }
    }
    let mut take = draft.append();
    take.lease = LeaseChange::Take(lease("other"));
    let taken = store.append(take.clone()).await.unwrap();
    assert_eq!(taken, Appended::Done { epoch: 2 });
    take.epoch = Some(1);
    let Appended::Conflict(head) = store.append(take).await.unwrap() else {
        panic!("an old run has written");
    };
    assert_eq!(head.owner.as_deref(), Some("other"));
}

pub(crate) async fn a_terminal_task_is_frozen(store: &Shared) {
    let ends = [
        TaskState::Completed,
        TaskState::Failed,
        TaskState::Canceled,
        TaskState::Rejected,
    ];
    for state in ends {
        let mut draft = Draft::new("ada", state.as_str(), 0);
        store.create(draft.create()).await.unwrap();
        store.append(draft.status(state, 1).append()).await.unwrap();
        let mut late = draft.append();
        late.lease = LeaseChange::Take(lease("late"));
        let late = store.append(late).await.unwrap();
        assert!(
            matches!(late, Appended::Conflict(head) if head.state == state && head.owner.is_none())
        );
        let stored = store
            .load(&draft.scope, &draft.id())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (Task::clone(&stored.task), stored.head.epoch),
            (draft.task, 1)
        );
    }
}

pub(crate) async fn checks_come_in_order(store: &Shared) {
    let mut draft = Draft::new("ada", "t", 0);
    let mut new = draft.create();
    new.idempotency = Some(key("k", 1));
    store.create(new).await.unwrap();
    let mut append = draft.status(TaskState::Working, 1).append();
    append.epoch = Some(9);
    append.idempotency = Some(key("k", 1));
    let mut missing = append.clone();
    missing.task = "nobody".into();
    assert_eq!(store.append(missing).await.unwrap(), Appended::Missing);
    assert!(matches!(
        store.append(append.clone()).await.unwrap(),
        Appended::Existing { .. }
    ));
    append.idempotency = None;
    assert!(matches!(
        store.append(append).await.unwrap(),
        Appended::Conflict(_)
    ));
}

pub(crate) async fn nothing_of_another_scope_is_seen(store: &Shared) {
    let mut draft = Draft::new("ada", "t", 0);
    let mut new = draft.create();
    new.idempotency = Some(key("k", 1));
    store.create(new).await.unwrap();
    let waiting = draft.status(TaskState::InputRequired, 1).append();
    store.append(waiting).await.unwrap();
    let hook = webhook(draft.id(), "hook", "https://one.example/");
    assert!(store.put_push_config(&draft.scope, &hook).await.unwrap());

    let (id, context) = (draft.id(), draft.context());
    let mut other_agent = scope("ada");
    other_agent.agent = "other".into();
    let mut other_workspace = scope("ada");
    other_workspace.workspace = "other".into();
    for other in [scope("bob"), other_agent, other_workspace] {
        assert!(store.load(&other, &id).await.unwrap().is_none());
        assert!(store.events(&other, &id, 0, 9).await.unwrap().is_empty());
        assert!(store.find_key(&other, "k").await.unwrap().is_none());
        let page = store.list(&other, &Default::default(), None, 9).await;
        let page = page.unwrap();
        assert_eq!((page.tasks.len(), page.total), (0, 0));
        assert!(store.waiting(&other, &context).await.unwrap().is_empty());
        let mut append = draft.append();
        append.scope = other.clone();
        assert_eq!(store.append(append).await.unwrap(), Appended::Missing);
        assert!(!store.put_push_config(&other, &hook).await.unwrap());
        assert!(store.push_configs(&other, &id).await.unwrap().is_none());
        let hook_id = "hook".into();
        let deleted = store.delete_push_config(&other, &id, &hook_id).await;
        assert!(!deleted.unwrap());
    }
    let mine = store.push_configs(&draft.scope, &id).await.unwrap();
    assert_eq!(mine.unwrap().len(), 1, "nothing was deleted from outside");
}

pub(crate) async fn events_after_a_position(store: &Shared) {
    let mut draft = Draft::new("ada", "t", 0);
    draft.status(TaskState::Working, 1).artifact("a", "0");
    store.create(draft.create()).await.unwrap();
    for run in 1..5 {
        for n in 0..run {
            draft.artifact("a", &format!("{run} {n}"));
        }
        store.append(draft.append()).await.unwrap();
    }
    let last = draft.log.len() as u64;
    for after in (0..=last + 1).chain([u64::MAX]) {
        for limit in [0, 1, 2, 3, 100] {
            let read = store.events(&draft.scope, &draft.id(), after, limit).await;
            let read = read.unwrap();
            let expected = draft.log.iter().skip(after as usize).take(limit);
            let told = |event: &Event| -> (Option<u64>, StreamResponse) {
                (event.position, event.response().clone())
            };
            assert_eq!(
                read.iter().map(told).collect::<Vec<_>>(),
                expected.map(told).collect::<Vec<_>>(),
                "{limit} after {after}"
            );
        }
    }
    let nobody = store.events(&draft.scope, &"nobody".into(), 0, 5).await;
    assert!(nobody.unwrap().is_empty());
}

pub(crate) async fn checkpoint_and_turn_stay_until_changed(store: &Shared) {
    let mut draft = Draft::new("ada", "t", 0);
    store.create(draft.create()).await.unwrap();
    let mut noted = draft.append();
    noted.checkpoint = Some("{\"step\":1}".into());
    noted.turn = Some(7);
    store.append(noted).await.unwrap();
    store
        .append(draft.artifact("a", "x").append())
        .await
        .unwrap();
    let stored = store
        .load(&draft.scope, &draft.id())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.head.checkpoint.as_deref(), Some("{\"step\":1}"));
    assert_eq!((stored.head.turn, stored.head.last), (7, 2));
    let mut noted = draft.append();
    noted.checkpoint = Some("2".into());
    noted.turn = Some(8);
    store.append(noted).await.unwrap();
    let stored = store
        .load(&draft.scope, &draft.id())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.head.checkpoint.as_deref(), Some("2"));
    assert_eq!(stored.head.turn, 8);
}

pub(crate) async fn what_accompanied_messages_is_kept(store: &Shared) {
    let mut draft = Draft::new("ada", "t", 0);
    let mut new = draft.create();
    new.request = Some("{\"trace\":\"\\u0000\u{ffff}\"}".into());
    store.create(new).await.unwrap();
    store
        .append(draft.artifact("a", "x").append())
        .await
        .unwrap();
    let mut late = draft.artifact("a", "y").append();
    late.request = Some("2".into());
    late.after = 1;
    for event in &mut late.events {
        event.position = Some(2);
    }
    let conflict = store.append(late.clone()).await.unwrap();
    assert!(matches!(conflict, Appended::Conflict(_)), "{conflict:?}");
    late.after = 2;
    for event in &mut late.events {
        event.position = Some(3);
    }
    store.append(late).await.unwrap();
    let of = async |scope, after| {
        let requests = store.requests(&scope, &draft.id(), after).await.unwrap();
        let shown = requests.iter().map(|(at, body)| format!("{at} {body}"));
        shown.collect::<Vec<_>>()
    };
    let first = "1 {\"trace\":\"\\u0000\u{ffff}\"}";
    assert_eq!(of(scope("ada"), 0).await, [first, "3 2"]);
    assert_eq!(of(scope("ada"), 1).await, ["3 2"]);
    assert_eq!(of(scope("ada"), u64::MAX).await, [""; 0]);
    assert_eq!(of(scope("bob"), 0).await, [""; 0]);
    let mut nothing = draft.append();
    nothing.request = Some("4".into());
    let refused = store.append(nothing).await.unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused:?}");
}

pub(crate) async fn status_time_never_goes_back(store: &Shared) {
    let mut first = Draft::new("ada", "a", 100);
    let mut second = Draft::new("ada", "b", 50);
    store.create(first.create()).await.unwrap();
    store.create(second.create()).await.unwrap();
    let mut back = first.status(TaskState::Working, 100).append();
    back.status_time = at(10);
    store.append(back).await.unwrap();
    let page = store.list(&first.scope, &Default::default(), None, 9).await;
    let ids: Vec<_> = page
        .unwrap()
        .tasks
        .into_iter()
        .map(|t| t.id.clone())
        .collect();
    assert_eq!(ids, ["a".into(), "b".into()]);
}

/// Ids that callers make up may hold what they like.
pub(crate) async fn any_text_is_an_id(store: &Shared) {
    for text in ["a\0b", "\u{ffff}0", "'\"\\{},", "🦀 \u{7f}", "%_"] {
        let mut draft = Draft::of_context("ada", &format!("task {text}"), text, 0);
        draft.scope.caller = text.into();
        let mut new = draft.create();
        new.idempotency = Some(key(text, 1));
        new.push_config = Some(webhook(draft.id(), text, "https://one.example/"));
        assert_eq!(store.create(new).await.unwrap(), Created::New);
        let nobody = store.load(&draft.scope, &text.into()).await.unwrap();
        assert!(nobody.is_none());
        let stored = store.load(&draft.scope, &draft.id()).await.unwrap();
        let stored = stored.unwrap();
        assert_eq!((&stored.scope, &*stored.task), (&draft.scope, &draft.task));
        let found = store.find_key(&draft.scope, text).await.unwrap();
        assert_eq!(found, Some((draft.id(), [1; 32])));
        let asks = draft.status(TaskState::InputRequired, 1).append();
        store.append(asks).await.unwrap();
        let waiting = store.waiting(&draft.scope, &text.into()).await.unwrap();
        assert_eq!(waiting, [draft.id()]);
        let hooks = store.push_configs(&draft.scope, &draft.id()).await.unwrap();
        assert_eq!(hooks.unwrap()[0].webhook.config.id, Some(text.into()));
        let heads = store.heads(&[(draft.scope.clone(), draft.id())]).await;
        assert_eq!(heads.unwrap()[0].0, draft.id());
        let behind = store.push_backlog(None, 100).await.unwrap();
        assert!(behind.contains(&(draft.scope.clone(), draft.id())));
    }
}

pub(crate) async fn a_closed_store_says_so(store: &Shared) {
    let mut draft = Draft::new("ada", "t", 0);
    store.create(draft.create()).await.unwrap();
    store.ping().await.unwrap();
    store.close().await.unwrap();
    store.close().await.unwrap();
    assert!(matches!(store.ping().await, Err(StoreError::Closed)));
    let append = draft.complete(1);
    assert!(matches!(
        store.append(append).await,
        Err(StoreError::Closed)
    ));
    let loaded = store.load(&draft.scope, &draft.id()).await;
    assert!(matches!(loaded, Err(StoreError::Closed)));
}
