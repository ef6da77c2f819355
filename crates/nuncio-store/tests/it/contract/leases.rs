//! Who runs a task, and who takes over.

use nuncio_protocol::TaskState;
use nuncio_store::{Appended, LeaseChange};

use super::Shared;
use crate::draft::{Draft, at, lease};

async fn claimed(store: &Shared, now: i64, owner: &str) -> Vec<(String, u64)> {
    let until = lease(owner, now + 10_000);
    let runs = store.claim_expired(at(now), until, 10).await.unwrap();
    let mut runs: Vec<_> = runs
        .into_iter()
        .map(|run| (run.stored.task.id.to_string(), run.stored.head.epoch))
        .collect();
    runs.sort();
    runs
}

pub(crate) async fn a_live_lease_is_not_claimed(store: &Shared) {
    store
        .create(Draft::new("ada", "t", 0).create())
        .await
        .unwrap();
    assert!(claimed(store, 9_999, "second").await.is_empty());
    assert!(claimed(store, 10_000, "second").await.is_empty());
}

pub(crate) async fn an_expired_run_is_claimed_once(store: &Shared) {
    let mut submitted = Draft::new("ada", "submitted", 0);
    store.create(submitted.create()).await.unwrap();
    let mut working = Draft::new("bob", "working", 0);
    working.status(TaskState::Working, 1).artifact("a", "x");
    store.create(working.create()).await.unwrap();
    let mut orphan = Draft::new("cyd", "orphan", 0).create();
    orphan.lease = None;
    store.create(orphan).await.unwrap();

    let runs = store
        .claim_expired(at(10_001), lease("second", 20_000), 10)
        .await;
    let runs = runs.unwrap();
    assert_eq!(runs.len(), 3);
    for run in &runs {
        let head = &run.stored.head;
        assert_eq!(head.lease, Some(lease("second", 20_000)));
        let orphan = run.stored.task.id.as_str() == "orphan";
        assert_eq!(head.epoch, if orphan { 1 } else { 2 });
        assert_eq!(
            head.attempt, 2,
            "each claim is a further attempt at the same message"
        );
        let stored = store.load(&run.stored.scope, &run.stored.task.id).await;
        let stored = stored.unwrap().unwrap();
        assert_eq!((&stored.head, &stored.task), (head, &run.stored.task));
    }
    let run = runs.iter().find(|run| run.stored.task.id == working.id());
    assert_eq!(*run.unwrap().stored.task, working.task);
    assert!(claimed(store, 10_001, "third").await.is_empty());
    let one = store
        .claim_expired(at(20_001), lease("third", 30_000), 1)
        .await;
    assert_eq!(one.unwrap().len(), 1, "not more than asked for");
}

pub(crate) async fn what_does_not_run_is_not_claimed(store: &Shared) {
    for state in [
        TaskState::InputRequired,
        TaskState::AuthRequired,
        TaskState::Completed,
    ] {
        let mut draft = Draft::new("ada", state.as_str(), 0);
        store.create(draft.create()).await.unwrap();
        store.append(draft.status(state, 1).append()).await.unwrap();
    }
    assert!(claimed(store, 99_999, "second").await.is_empty());
}

pub(crate) async fn an_old_run_is_fenced(store: &Shared) {
    let mut draft = Draft::new("ada", "t", 0);
    store.create(draft.create()).await.unwrap();
    assert_eq!(claimed(store, 10_001, "second").await, [("t".into(), 2)]);
    let mut old = draft.status(TaskState::Working, 2).append();
    old.epoch = Some(1);
    assert!(matches!(
        store.append(old.clone()).await.unwrap(),
        Appended::Conflict(head) if head.epoch == 2
    ));
    old.epoch = Some(2);
    assert_eq!(
        store.append(old).await.unwrap(),
        Appended::Done { epoch: 2 }
    );
    let mut rest = draft.status(TaskState::InputRequired, 3).append();
    rest.epoch = Some(2);
    store.append(rest).await.unwrap();
    let mut answer = draft.message("yes").status(TaskState::Working, 4).append();
    answer.lease = LeaseChange::Take(lease("third", 40_000));
    answer.turn = Some(answer.after + 1);
    assert_eq!(
        store.append(answer).await.unwrap(),
        Appended::Done { epoch: 3 }
    );
    let stored = store
        .load(&draft.scope, &draft.id())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.head.lease, Some(lease("third", 40_000)));
    assert_eq!(stored.head.attempt, 1, "another message, another count");
    assert_eq!(*stored.task, draft.task);
}

pub(crate) async fn renewing_prolongs_all_of_an_owner(store: &Shared) {
    for id in ["a", "b"] {
        store
            .create(Draft::new("ada", id, 0).create())
            .await
            .unwrap();
    }
    let mut other = Draft::new("ada", "c", 0).create();
    other.lease = Some(lease("other", 10_000));
    store.create(other).await.unwrap();
    store.renew(lease("process", 30_000)).await.unwrap();
    store.renew(lease("process", 15_000)).await.unwrap();
    assert_eq!(claimed(store, 29_000, "second").await, [("c".into(), 2)]);
    let a = store.load(&crate::draft::scope("ada"), &"a".into()).await;
    assert_eq!(
        a.unwrap().unwrap().head.lease,
        Some(lease("process", 30_000)),
        "never shortened"
    );
    let late = [("a".into(), 2), ("b".into(), 2)];
    assert_eq!(claimed(store, 30_001, "third").await, late);
}

pub(crate) async fn releasing_gives_all_up(store: &Shared) {
    for id in ["a", "b"] {
        store
            .create(Draft::new("ada", id, 0).create())
            .await
            .unwrap();
    }
    let mut other = Draft::new("ada", "c", 0).create();
    other.lease = Some(lease("other", 10_000));
    store.create(other).await.unwrap();
    store.renew(lease("process", 30_000)).await.unwrap();
    store.release_all("process").await.unwrap();
    let a = store.load(&crate::draft::scope("ada"), &"a".into()).await;
    let a = a.unwrap().unwrap();
    assert_eq!((a.head.lease, a.head.epoch), (None, 1));
    let free = [("a".into(), 2), ("b".into(), 2)];
    assert_eq!(claimed(store, 5, "second").await, free);
}
