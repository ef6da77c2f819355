//! The memory backend.

use std::sync::Arc;

use nuncio_store::{MemoryOptions, MemoryStore, Owners as _, Sessions as _, Store};

use crate::contract::owners::task;
use crate::contract::sessions::{said, session_of};
use crate::contract::{Shared, contract, contract_of_replicas};
use crate::draft::{Draft, key, scope};

async fn open() -> Option<(Shared, ())> {
    Some((Arc::new(MemoryStore::default()), ()))
}

async fn open_two() -> Option<([Shared; 2], ())> {
    let store = MemoryStore::default();
    let replica = store.replica();
    Some(([Arc::new(store), Arc::new(replica)], ()))
}

contract!(open);
contract_of_replicas!(open_two);

#[test]
fn a_store_alone_hears_nothing() {
    let store = MemoryStore::default();
    assert!(store.changes().is_none());
    let replica = store.replica();
    assert!(store.changes().is_some() && replica.changes().is_some());
    drop(replica);
    assert!(store.changes().is_none());
}

#[tokio::test]
async fn the_oldest_ended_task_is_forgotten_first() {
    let store = MemoryStore::new(MemoryOptions {
        max_finished: 2,
        ..MemoryOptions::default()
    });
    let mut open = Draft::new("ada", "open", 0);
    store.create(open.create()).await.unwrap();
    for n in 0..4 {
        let mut draft = Draft::new("ada", &format!("task {n}"), n);
        let mut new = draft.create();
        new.idempotency = Some(key(&format!("key {n}"), 1));
        store.create(new).await.unwrap();
        store.append(draft.complete(n + 10)).await.unwrap();
    }
    let ada = scope("ada");
    let page = store
        .list(&ada, &Default::default(), None, 10)
        .await
        .unwrap();
    let ids: Vec<_> = page.tasks.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(
        (ids, page.total),
        (vec!["task 3", "task 2", "open"], 3),
        "open tasks are never forgotten"
    );
    assert!(store.find_key(&ada, "key 1").await.unwrap().is_none());
    assert!(store.find_key(&ada, "key 2").await.unwrap().is_some());
}

#[tokio::test]
async fn the_oldest_session_is_forgotten_first() {
    let store = MemoryStore::new(MemoryOptions {
        max_sessions: 2,
        ..MemoryOptions::default()
    });
    let keys = ["a", "b", "c"].map(|context| session_of("ada", context));
    for (n, key) in keys.iter().enumerate() {
        let mut one = said(key, 0, &["x"]);
        one.at = crate::draft::at(100 - n as i64);
        store.append_session(one).await.unwrap();
    }
    let mut counts = Vec::new();
    for key in &keys {
        counts.push(store.session(key, 0, 9).await.unwrap().len());
    }
    // The newest one has the oldest time, and is not the one to go while it is written to.
    assert_eq!(counts, [1, 0, 1]);
}

#[tokio::test]
async fn what_was_taken_longest_ago_is_forgotten_first() {
    let store = MemoryStore::new(MemoryOptions {
        max_owned: 3,
        ..MemoryOptions::default()
    });
    let (ada, ids) = (scope("ada"), ["a", "b", "c", "d"].map(task));
    for (n, id) in ids.iter().enumerate() {
        let at = crate::draft::at(n as i64);
        assert!(
            store
                .take(&ada, &[id.clone(), task("a")], at)
                .await
                .unwrap()
        );
    }
    let owned = store.owned(&ada, &ids).await.unwrap();
    let owned: Vec<_> = owned.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(owned, ["a", "c", "d"]);
    assert_eq!(store.owned_tasks(&ada).await.unwrap(), 3);
}
