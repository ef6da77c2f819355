//! Several processes on one store.

use std::collections::BTreeSet;
use std::time::Duration;

use nuncio_protocol::{TaskId, TaskState};
use nuncio_store::{Appended, Change, Claim, Created, Head, LeaseChange, StoreError};
use tokio::sync::broadcast;

use super::Shared;
use crate::draft::{Draft, key, lapsed, lease, scope};

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
