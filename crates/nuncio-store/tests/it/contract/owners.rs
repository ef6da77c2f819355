//! Whose the tasks and conversations of agents elsewhere are.

use nuncio_protocol::Timestamp;
use nuncio_store::{OwnedId, Scope, StoreError};

use super::Shared;
use crate::draft::{at, scope};

pub(crate) fn task(id: &str) -> OwnedId {
    OwnedId::Task(id.into())
}

pub(crate) fn context(id: &str) -> OwnedId {
    OwnedId::Context(id.into())
}

async fn take(store: &Shared, scope: &Scope, ids: &[OwnedId], ms: i64) -> bool {
    store.take(scope, ids, at(ms)).await.unwrap()
}

/// What of some ids is the caller's, in order.
async fn owned(store: &Shared, scope: &Scope, ids: &[OwnedId]) -> Vec<(OwnedId, Timestamp)> {
    let mut owned = store.owned(scope, ids).await.unwrap();
    owned.sort_unstable();
    owned
}

pub(crate) async fn what_is_taken_is_one_callers(store: &Shared) {
    let (ada, bob) = (scope("ada"), scope("bob"));
    let both = [task("t"), context("c")];
    assert!(owned(store, &ada, &both).await.is_empty());
    assert!(take(store, &ada, &both, 1).await);
    let taken = [(task("t"), at(1)), (context("c"), at(1))];
    assert_eq!(owned(store, &ada, &both).await, taken);
    let asked = [context("c"), task("other")];
    assert_eq!(owned(store, &ada, &asked).await, taken[1..]);
    assert!(owned(store, &ada, &[]).await.is_empty());
    assert!(owned(store, &bob, &both).await.is_empty());
    assert!(!take(store, &bob, &both[..1], 2).await);
    assert!(take(store, &ada, &[task("t"), task("t")], 3).await, "again");
    assert!(take(store, &ada, &both[..1], 2).await);
    let renewed = [(task("t"), at(3)), (context("c"), at(1))];
    assert_eq!(owned(store, &ada, &both).await, renewed, "never back");
    assert!(take(store, &ada, &[], 4).await);
}

pub(crate) async fn all_or_none_are_taken(store: &Shared) {
    let (ada, bob) = (scope("ada"), scope("bob"));
    assert!(take(store, &ada, &[task("n")], 1).await);
    let mixed = [task("m"), task("n"), task("o")];
    assert!(!take(store, &bob, &mixed, 2).await);
    assert!(owned(store, &bob, &mixed).await.is_empty());
    assert_eq!(store.owned_tasks(&bob).await.unwrap(), 0);
    let mine = owned(store, &ada, &mixed).await;
    assert_eq!(mine, [(task("n"), at(1))], "not renewed by another");
    assert!(take(store, &ada, &mixed, 3).await);
}

pub(crate) async fn tasks_and_contexts_of_one_name_are_told_apart(store: &Shared) {
    let (ada, bob) = (scope("ada"), scope("bob"));
    assert!(take(store, &ada, &[task("x"), context("y")], 1).await);
    assert!(take(store, &bob, &[context("x"), task("y"), task("z")], 2).await);
    let all = [task("x"), task("y"), context("x"), context("y")];
    let adas = [(task("x"), at(1)), (context("y"), at(1))];
    assert_eq!(owned(store, &ada, &all).await, adas);
    assert_eq!(store.owned_tasks(&ada).await.unwrap(), 1);
    assert_eq!(store.owned_tasks(&bob).await.unwrap(), 2);
    assert_eq!(store.owned_tasks(&scope("eve")).await.unwrap(), 0);
}

/// The agent knows no workspaces of ours; another agent has ids of its own.
pub(crate) async fn an_id_of_an_agent_is_one_callers_in_all_workspaces(store: &Shared) {
    let ada = scope("ada");
    let elsewhere = Scope {
        workspace: "other".into(),
        ..ada.clone()
    };
    let another = Scope {
        agent: "another".into(),
        ..ada.clone()
    };
    assert!(take(store, &ada, &[context("c")], 1).await);
    assert!(!take(store, &elsewhere, &[context("c")], 2).await);
    assert!(owned(store, &elsewhere, &[context("c")]).await.is_empty());
    assert!(owned(store, &another, &[context("c")]).await.is_empty());
    assert!(take(store, &another, &[context("c")], 3).await);
    let mine = owned(store, &ada, &[context("c")]).await;
    assert_eq!(mine, [(context("c"), at(1))]);
}

pub(crate) async fn any_text_is_an_id_but_none_and_a_long_one(store: &Shared) {
    let ada = scope("ada");
    let ids = ["a\0b", "\u{ffff}", "ü/ä", &"x".repeat(256)].map(task);
    assert!(take(store, &ada, &ids, 1).await);
    assert_eq!(store.owned(&ada, &ids).await.unwrap().len(), 4);
    for id in ids {
        assert_eq!(
            owned(store, &ada, std::slice::from_ref(&id)).await,
            [(id, at(1))]
        );
    }
    for (id, why) in [("", "empty"), (&*"x".repeat(257), "257 bytes")] {
        let refused = store.take(&ada, &[task("fine"), task(id)], at(2)).await;
        let refused = refused.unwrap_err();
        assert!(
            matches!(
                refused,
                StoreError::Corrupt(_) | StoreError::TooLarge { .. }
            ),
            "{refused}"
        );
        assert!(refused.to_string().contains(why), "{refused}");
    }
    assert!(owned(store, &ada, &[task("fine")]).await.is_empty());
}

pub(crate) async fn what_is_not_taken_again_is_forgotten(store: &Shared) {
    let (ada, bob) = (scope("ada"), scope("bob"));
    for (n, id) in ["a", "b", "c", "d"].into_iter().enumerate() {
        assert!(take(store, &ada, &[task(id)], n as i64 * 10).await);
    }
    assert!(take(store, &ada, &[task("a")], 25).await);
    assert_eq!(store.prune_owned(at(0), 9).await.unwrap(), 0);
    assert_eq!(store.prune_owned(at(30), 0).await.unwrap(), 0);
    assert_eq!(store.prune_owned(at(30), 2).await.unwrap(), 2);
    let all = ["a", "b", "c", "d"].map(task);
    let left = [(task("a"), at(25)), (task("d"), at(30))];
    assert_eq!(owned(store, &ada, &all).await, left, "the oldest first");
    assert_eq!(store.owned_tasks(&ada).await.unwrap(), 2);
    assert!(take(store, &bob, &[task("b")], 40).await, "nobody's again");
    assert_eq!(store.prune_owned(at(31), 9).await.unwrap(), 2);
    assert_eq!(store.prune_owned(at(31), 9).await.unwrap(), 0);
    assert_eq!(store.owned_tasks(&bob).await.unwrap(), 1);
}

pub(crate) async fn one_of_many_takes_it(store: &Shared) {
    let takers = (0..16).map(|n| {
        let store = Shared::clone(store);
        tokio::spawn(async move {
            let ids = [task("t"), context(&format!("c{n}")), context("c")];
            take(&store, &scope(&format!("caller {n}")), &ids, n).await
        })
    });
    let takers: Vec<_> = takers.collect();
    let mut winners = Vec::new();
    for (n, taker) in takers.into_iter().enumerate() {
        if taker.await.unwrap() {
            winners.push(n);
        }
    }
    let [winner] = winners[..] else {
        panic!("taken by {winners:?}");
    };
    for n in 0..16 {
        let all = [task("t"), context(&format!("c{n}")), context("c")];
        let owned = owned(store, &scope(&format!("caller {n}")), &all).await;
        assert_eq!(owned.len(), if n == winner { 3 } else { 0 });
    }
}
