//! Lists, totals, conversations.

use std::collections::BTreeMap;

use nuncio_protocol::{TaskId, TaskState};
use nuncio_store::{ListFilter, PageKey, Scope};

use super::Shared;
use crate::draft::{Draft, at, scope};

async fn all(store: &Shared, scope: &Scope, filter: &ListFilter, size: usize) -> Vec<TaskId> {
    let mut ids = Vec::new();
    let mut from: Option<PageKey> = None;
    loop {
        let page = store
            .list(scope, filter, from.as_ref(), size)
            .await
            .unwrap();
        assert!(page.tasks.len() <= size);
        ids.extend(page.tasks.into_iter().map(|task| task.id.clone()));
        match page.next {
            Some(next) => from = Some(next),
            None => return ids,
        }
    }
}

pub(crate) async fn newest_first_then_by_id(store: &Shared) {
    for (id, ms) in [("b", 5), ("a", 5), ("d", 1), ("c", 5), ("e", 9)] {
        store
            .create(Draft::new("ada", id, ms).create())
            .await
            .unwrap();
    }
    let mut e = Draft::new("ada", "f", 0);
    store.create(e.create()).await.unwrap();
    store.append(e.complete(20)).await.unwrap();
    let ada = scope("ada");
    let ids = all(store, &ada, &ListFilter::default(), 100).await;
    let ids: Vec<_> = ids.iter().map(TaskId::as_str).collect();
    assert_eq!(ids, ["f", "e", "c", "b", "a", "d"]);
    let page = store.list(&ada, &ListFilter::default(), None, 1).await;
    assert_eq!(*page.unwrap().tasks[0], e.task, "the whole task");
}

pub(crate) async fn pages_meet_without_gap(store: &Shared) {
    let mut expected = Vec::new();
    for n in 0..57 {
        let id = format!("t{n:02}");
        let ms = n / 10;
        store
            .create(Draft::new("ada", &id, ms).create())
            .await
            .unwrap();
        expected.push((ms, id));
    }
    expected.sort();
    let expected: Vec<TaskId> = expected
        .into_iter()
        .rev()
        .map(|(_, id)| id.into())
        .collect();
    for size in [1, 7, 19, 56, 57, 58] {
        let ids = all(store, &scope("ada"), &ListFilter::default(), size).await;
        assert_eq!(ids, expected, "pages of {size}");
    }
    let page = store
        .list(&scope("ada"), &ListFilter::default(), None, 57)
        .await;
    assert_eq!(page.unwrap().next, None, "no empty last page");
}

pub(crate) async fn filters_combine(store: &Shared) {
    let states = [
        TaskState::Submitted,
        TaskState::InputRequired,
        TaskState::Completed,
    ];
    let mut made = Vec::new();
    for n in 0..24 {
        let (context, ms) = (["x", "y"][n % 2], (n / 4) as i64);
        let state = states[n % 3];
        let mut draft = Draft::of_context("ada", &format!("t{n:02}"), context, 0);
        store.create(draft.create()).await.unwrap();
        draft.status(state, ms);
        store.append(draft.append()).await.unwrap();
        made.push((ms, draft.id(), context, state));
    }
    made.sort();
    for context in [None, Some("x"), Some("y"), Some("nowhere")] {
        for state in [None, Some(TaskState::Completed), Some(TaskState::Working)] {
            for not_before in [None, Some(0), Some(3), Some(99)] {
                let filter = ListFilter {
                    context: context.map(Into::into),
                    state,
                    not_before: not_before.map(at),
                };
                let expected: Vec<TaskId> = made
                    .iter()
                    .rev()
                    .filter(|(ms, _, of, is)| {
                        context.is_none_or(|context| context == *of)
                            && state.is_none_or(|state| state == *is)
                            && not_before.is_none_or(|not_before| *ms >= not_before)
                    })
                    .map(|(_, id, _, _)| id.clone())
                    .collect();
                let ids = all(store, &scope("ada"), &filter, 3).await;
                assert_eq!(ids, expected, "{filter:?}");
                let page = store.list(&scope("ada"), &filter, None, 3).await;
                assert_eq!(page.unwrap().total, expected.len() as u64, "{filter:?}");
            }
        }
    }
}

pub(crate) async fn totals_follow_every_change(store: &Shared) {
    let total = async |caller: &str, state: Option<TaskState>| {
        let filter = ListFilter {
            state,
            ..ListFilter::default()
        };
        let page = store.list(&scope(caller), &filter, None, 1).await;
        page.unwrap().total
    };
    let mut drafts: Vec<_> = (0..5)
        .map(|n| Draft::new("ada", &format!("t{n}"), n))
        .collect();
    for draft in &mut drafts {
        store.create(draft.create()).await.unwrap();
    }
    store
        .create(Draft::new("bob", "other", 0).create())
        .await
        .unwrap();
    assert_eq!(total("ada", None).await, 5);
    assert_eq!(total("ada", Some(TaskState::Submitted)).await, 5);
    let working = drafts[0].status(TaskState::Working, 10).append();
    store.append(working.clone()).await.unwrap();
    store.append(working).await.unwrap();
    store.append(drafts[1].complete(11)).await.unwrap();
    store
        .append(drafts[0].artifact("a", "x").append())
        .await
        .unwrap();
    assert_eq!(total("ada", None).await, 5);
    assert_eq!(total("ada", Some(TaskState::Submitted)).await, 3);
    assert_eq!(total("ada", Some(TaskState::Working)).await, 1);
    assert_eq!(total("ada", Some(TaskState::Completed)).await, 1);
    assert_eq!(total("bob", None).await, 1);
}

/// BR-084, on a smaller scale: what is not touched while paging comes exactly once.
pub(crate) async fn paging_is_stable_under_updates(store: &Shared) {
    let mut drafts: BTreeMap<usize, Draft> = BTreeMap::new();
    for n in 0..600 {
        let mut draft = Draft::new("ada", &format!("t{n:04}"), (n / 3) as i64);
        store.create(draft.create()).await.unwrap();
        drafts.insert(n, draft);
    }
    let writer = {
        let store = store.clone();
        let touched: Vec<Draft> = (0..600)
            .step_by(4)
            .filter_map(|n| drafts.remove(&n))
            .collect();
        tokio::spawn(async move {
            for (n, mut draft) in touched.into_iter().enumerate() {
                draft.status(TaskState::Working, 1_000 + n as i64);
                store.append(draft.append()).await.unwrap();
            }
        })
    };
    let ids = all(store, &scope("ada"), &ListFilter::default(), 20).await;
    writer.await.unwrap();
    for draft in drafts.values() {
        let seen = ids.iter().filter(|id| **id == draft.task.id).count();
        assert_eq!(seen, 1, "{}", draft.task.id);
    }
}

pub(crate) async fn what_waits_in_a_conversation(store: &Shared) {
    let waiting = async |context: &str| {
        let mut ids = store.waiting(&scope("ada"), &context.into()).await.unwrap();
        ids.sort();
        ids
    };
    let mut drafts: Vec<_> = ["a", "b", "c"]
        .map(|id| Draft::of_context("ada", id, "x", 0))
        .into();
    drafts.push(Draft::of_context("ada", "d", "y", 0));
    for draft in &mut drafts {
        store.create(draft.create()).await.unwrap();
    }
    assert!(waiting("x").await.is_empty());
    let asked = drafts[0].status(TaskState::InputRequired, 1).append();
    store.append(asked).await.unwrap();
    assert_eq!(waiting("x").await, ["a".into()]);
    assert!(waiting("y").await.is_empty());
    for draft in &mut drafts[1..] {
        let asked = draft.status(TaskState::InputRequired, 2).append();
        store.append(asked).await.unwrap();
    }
    assert_eq!(waiting("x").await.len(), 2, "two at most");
    for draft in &mut drafts[..2] {
        draft.message("yes").status(TaskState::Working, 3);
        store.append(draft.append()).await.unwrap();
    }
    assert_eq!(waiting("x").await, ["c".into()]);
    assert!(waiting("nowhere").await.is_empty());
}
