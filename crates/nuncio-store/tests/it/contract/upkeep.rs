//! What has expired goes; what moves arrives whole.

use nuncio_protocol::{TaskId, TaskState};
use nuncio_store::{Claim, Imported, ListFilter, StoreError, Sweep, SweepKind, Swept, WholeTask};

use super::Shared;
use crate::draft::{Draft, at, key, lease, scope, webhook};

/// Sweeps to the end in parts of `limit`; gives the ids and the number of parts.
async fn sweep(store: &Shared, kind: SweepKind, before: i64, limit: usize) -> (Vec<String>, usize) {
    let (mut ids, mut parts, mut from) = (Vec::new(), 0, None);
    loop {
        let before = at(before);
        let part = Sweep {
            kind,
            before,
            from,
            limit,
        };
        let Swept { tasks, next } = store.sweep(part).await.unwrap();
        assert!(tasks.len() <= limit);
        ids.extend(tasks.into_iter().map(|(_, id)| id.to_string()));
        parts += 1;
        from = next;
        if from.is_none() {
            ids.sort();
            return (ids, parts);
        }
    }
}

async fn ended(store: &Shared, caller: &str, id: &str, ms: i64) -> Draft {
    let mut draft = Draft::new(caller, id, ms - 1);
    let mut new = draft.create();
    new.idempotency = Some(key(id, 1));
    new.request = Some("{}".into());
    store.create(new).await.unwrap();
    store.append(draft.complete(ms)).await.unwrap();
    draft
}

/// SEC-07: after the purge it is as if the task had never been; what has not ended stays.
pub(crate) async fn ended_tasks_expire_with_all_that_is_theirs(store: &Shared) {
    let ada = scope("ada");
    let gone = ended(store, "ada", "gone", 100).await;
    let hook = webhook(gone.id(), "hook", "https://one.example/");
    store.put_push_config(&ada, &hook).await.unwrap();
    ended(store, "bob", "gone too", 200).await;
    ended(store, "ada", "young", 1_000).await;
    let mut asking = Draft::new("ada", "asking", 1);
    store.create(asking.create()).await.unwrap();
    let paused = asking.status(TaskState::InputRequired, 2).append();
    store.append(paused).await.unwrap();
    store
        .create(Draft::new("ada", "running", 3).create())
        .await
        .unwrap();

    assert_eq!(sweep(store, SweepKind::Expire, 100, 10).await.0, [""; 0]);
    let (ids, _) = sweep(store, SweepKind::Expire, 1_000, 10).await;
    assert_eq!(ids, ["gone", "gone too"]);
    assert!(store.load(&ada, &"gone".into()).await.unwrap().is_none());
    assert!(
        store
            .events(&ada, &"gone".into(), 0, 9)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        store
            .push_configs(&ada, &"gone".into())
            .await
            .unwrap()
            .is_none()
    );
    assert!(store.find_key(&ada, "gone").await.unwrap().is_none());
    assert!(store.find_key(&ada, "young").await.unwrap().is_some());
    let page = store
        .list(&ada, &ListFilter::default(), None, 10)
        .await
        .unwrap();
    let mut left: Vec<_> = page.tasks.iter().map(|task| task.id.as_str()).collect();
    left.sort_unstable();
    assert_eq!((left, page.total), (vec!["asking", "running", "young"], 3));
    // The id and the key may be used again, and the old log does not come back.
    let mut again = Draft::new("ada", "gone", 2_000);
    let mut new = again.create();
    new.idempotency = Some(key("gone", 2));
    store.create(new).await.unwrap();
    store
        .append(again.status(TaskState::Working, 2_001).append())
        .await
        .unwrap();
    let stored = store.load(&ada, &"gone".into()).await.unwrap().unwrap();
    assert_eq!((*stored.task).clone(), again.task);
    let requests = store.requests(&ada, &"gone".into(), 0).await.unwrap();
    assert_eq!(requests, [], "nor does what accompanied its messages");
    assert_eq!(
        store
            .events(&ada, &"gone".into(), 0, 9)
            .await
            .unwrap()
            .len(),
        2
    );
}

pub(crate) async fn a_sweep_goes_on_where_it_stopped(store: &Shared) {
    for n in 0..25 {
        ended(store, "ada", &format!("t{n:02}"), 100 + n).await;
    }
    let (ids, parts) = sweep(store, SweepKind::Expire, 110, 4).await;
    let expected: Vec<_> = (0..10).map(|n| format!("t{n:02}")).collect();
    assert_eq!(ids, expected);
    assert!((3..=4).contains(&parts), "{parts}");
    assert_eq!(sweep(store, SweepKind::Expire, 110, 4).await.0, [""; 0]);
}

pub(crate) async fn a_compacted_log_leaves_the_task(store: &Shared) {
    let ada = scope("ada");
    let draft = ended(store, "ada", "old", 100).await;
    ended(store, "ada", "young", 1_000).await;
    let mut working = Draft::new("ada", "working", 1);
    store.create(working.create()).await.unwrap();
    store
        .append(working.status(TaskState::Working, 2).append())
        .await
        .unwrap();
    let compacted = sweep(store, SweepKind::Compact, 500, 10).await.0;
    assert_eq!(compacted, ["old"]);
    let stored = store.load(&ada, &"old".into()).await.unwrap().unwrap();
    assert_eq!((&*stored.task, stored.head.last), (&draft.task, 3));
    for after in 0..4 {
        let events = store.events(&ada, &"old".into(), after, 9).await.unwrap();
        assert!(
            events.is_empty(),
            "nothing is made up in place of what is gone"
        );
    }
    let requests = async |id: &str| store.requests(&ada, &id.into(), 0).await.unwrap().len();
    assert_eq!((requests("old").await, requests("young").await), (0, 1));
    for id in ["young", "working"] {
        assert!(
            !store
                .events(&ada, &id.into(), 0, 9)
                .await
                .unwrap()
                .is_empty()
        );
    }
    assert_eq!(
        store.find_key(&ada, "old").await.unwrap().unwrap().0,
        draft.id()
    );
    let again = sweep(store, SweepKind::Compact, 500, 10).await.0;
    assert_eq!(again, [""; 0], "once is enough");
    assert_eq!(sweep(store, SweepKind::Expire, 500, 10).await.0, ["old"]);
}

/// The log is the outbox of webhooks.
pub(crate) async fn a_log_that_a_webhook_needs_is_kept(store: &Shared) {
    let mut draft = Draft::new("ada", "t", 1);
    let mut new = draft.create();
    new.push_config = Some(webhook(draft.id(), "hook", "https://one.example/"));
    store.create(new).await.unwrap();
    store.append(draft.complete(100)).await.unwrap();
    assert_eq!(sweep(store, SweepKind::Compact, 500, 10).await.0, [""; 0]);
    let (task, hook) = (draft.id(), "hook".into());
    store.advance_push_cursor(&task, &hook, 3).await.unwrap();
    assert_eq!(sweep(store, SweepKind::Compact, 500, 10).await.0, ["t"]);
}

pub(crate) async fn reclaiming_comes_to_an_end(store: &Shared) {
    for n in 0..50 {
        ended(store, "ada", &format!("t{n}"), 100 + n).await;
    }
    sweep(store, SweepKind::Expire, 1_000, 10).await;
    let mut rounds = 0;
    while store.reclaim().await.unwrap() {
        rounds += 1;
        assert!(rounds < 1_000);
    }
    ended(store, "ada", "after", 1).await;
}

async fn exported(store: &Shared) -> Vec<WholeTask> {
    let mut all: Vec<WholeTask> = Vec::new();
    loop {
        let after: Option<TaskId> = all.last().map(|whole| whole.task.id.clone());
        let page = store.export(after.as_ref(), 2).await.unwrap();
        if page.is_empty() {
            all.sort_by(|a, b| a.task.id.cmp(&b.task.id));
            return all;
        }
        all.extend(page);
    }
}

/// A store with a task of every kind.
async fn fill(store: &Shared) {
    ended(store, "ada", "compacted", 10).await;
    sweep(store, SweepKind::Compact, 11, 10).await;
    ended(store, "ada", "ended", 100).await;
    let mut asking = Draft::of_context("bob", "asking", "talk", 200);
    let mut new = asking.create();
    new.push_config = Some(webhook(asking.id(), "hook", "https://one.example/"));
    new.checkpoint = Some("{\"step\":1}".into());
    new.request = Some("{\"trace\":\"one\"}".into());
    store.create(new).await.unwrap();
    let mut paused = asking.status(TaskState::InputRequired, 201).append();
    paused.request = Some("{\"trace\":\"two\"}".into());
    paused.idempotency = Some(key("second", 2));
    store.append(paused).await.unwrap();
    let mut running = Draft::new("ada", "running", 300);
    store.create(running.create()).await.unwrap();
    for n in 0..600 {
        running.artifact("a", &n.to_string());
    }
    store
        .append(running.status(TaskState::Working, 301).append())
        .await
        .unwrap();
}

fn log(whole: &WholeTask) -> Option<Vec<(Option<u64>, &str)>> {
    let events = whole.log.as_ref()?.iter();
    Some(events.map(|event| (event.position, event.json())).collect())
}

pub(crate) async fn tasks_move_whole(store: &Shared) {
    fill(store).await;
    let before = exported(store).await;
    assert_eq!(before.len(), 4);
    let target: Shared = std::sync::Arc::new(nuncio_store::MemoryStore::default());
    for whole in &before {
        assert_eq!(target.import(whole.clone()).await.unwrap(), Imported::New);
    }
    let (bob, asking) = (scope("bob"), TaskId::from("asking"));
    let found = target.find_key(&bob, "second").await.unwrap();
    assert_eq!(found, Some((asking.clone(), [2; 32])));
    let waiting = target.waiting(&bob, &"talk".into()).await.unwrap();
    assert_eq!(waiting, std::slice::from_ref(&asking));
    let stored = target.load(&bob, &asking).await.unwrap().unwrap();
    assert_eq!(stored.head.checkpoint.as_deref(), Some("{\"step\":1}"));
    assert_eq!(target.push_backlog(None, 9).await.unwrap().len(), 1);
    let requests = target.requests(&bob, &asking, 1).await.unwrap();
    assert_eq!(requests, [(2, "{\"trace\":\"two\"}".into())]);
    let after = exported(&target).await;
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before.scope, after.scope);
        assert_eq!(before.context, after.context);
        assert_eq!(before.task, after.task);
        assert_eq!(before.head, after.head);
        assert_eq!(before.status_time, after.status_time);
        assert_eq!(before.requests, after.requests);
        assert_eq!(before.keys, after.keys);
        assert_eq!(before.webhooks, after.webhooks);
        assert_eq!(log(before), log(after));
    }
}

pub(crate) async fn importing_again_changes_nothing(store: &Shared) {
    let source: Shared = std::sync::Arc::new(nuncio_store::MemoryStore::default());
    fill(&source).await;
    let wholes = exported(&source).await;
    for expected in [Imported::New, Imported::Same] {
        for whole in &wholes {
            assert_eq!(store.import(whole.clone()).await.unwrap(), expected);
        }
    }
    assert_eq!(exported(store).await.len(), wholes.len());
    let (ada, running) = (scope("ada"), TaskId::from("running"));
    let stored = store.load(&ada, &running).await.unwrap().unwrap();
    assert_eq!((stored.head.last, stored.head.owner), (602, None));
    let requests = store.requests(&scope("bob"), &"asking".into(), 0).await;
    assert_eq!(requests.unwrap().len(), 2);
    let tail = store.events(&ada, &running, 590, 99).await.unwrap();
    let positions: Vec<_> = tail.iter().filter_map(|event| event.position).collect();
    assert!(positions.into_iter().eq(591..=602));
    let page = store
        .list(&ada, &ListFilter::default(), None, 9)
        .await
        .unwrap();
    let ids: Vec<_> = page.tasks.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(
        (ids, page.total),
        (vec!["running", "ended", "compacted"], 3)
    );
    // Nobody runs it here, so whoever asks may take it up.
    let runs = store
        .claim_expired(lease("new"), Claim::Expired, 9)
        .await
        .unwrap();
    assert_eq!(runs.len(), 1);
    let mut changed = wholes[3].clone();
    assert_eq!(changed.task.id, running);
    changed.status_time = at(301);
    assert_eq!(store.import(changed).await.unwrap(), Imported::Same);
}

pub(crate) async fn what_does_not_fit_is_not_imported(store: &Shared) {
    let source: Shared = std::sync::Arc::new(nuncio_store::MemoryStore::default());
    let draft = ended(&source, "ada", "t", 100).await;
    let whole = exported(&source).await.remove(0);

    let mut other = whole.clone();
    other.log.as_mut().unwrap().pop();
    let refused = store.import(other).await;
    assert!(
        matches!(refused, Err(StoreError::Corrupt(_))),
        "{refused:?}"
    );
    let mut accompanied = whole.clone();
    accompanied.requests = vec![(4, "{}".into())];
    assert!(store.import(accompanied).await.is_err());
    let mut running = whole.clone();
    running.head.state = TaskState::Working;
    assert!(store.import(running).await.is_err());

    ended(store, "ada", "another", 100).await;
    let mut taken = whole.clone();
    taken.keys[0].key = "another".to_owned();
    let expected = Imported::KeyInUse {
        key: "another".to_owned(),
        task: "another".into(),
    };
    assert_eq!(store.import(taken).await.unwrap(), expected);
    assert!(
        store
            .load(&scope("ada"), &draft.id())
            .await
            .unwrap()
            .is_none()
    );

    ended(store, "bob", "t", 100).await;
    assert_eq!(store.import(whole).await.unwrap(), Imported::Different);
}
