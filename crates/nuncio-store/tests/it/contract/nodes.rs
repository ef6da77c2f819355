//! The call trees of tasks.

use nuncio_protocol::TaskId;
use nuncio_store::{NodeRow, StoreError, Sweep, SweepKind};

use super::Shared;
use crate::draft::{Draft, at, scope};

/// How many nodes a task keeps.
const MOST: usize = 2_000;

fn node(id: &str, json: &str) -> NodeRow {
    NodeRow {
        id: id.into(),
        json: json.into(),
    }
}

async fn shown(store: &Shared, task: &str) -> Vec<(String, String)> {
    let nodes = store.nodes(&scope("ada"), &task.into()).await.unwrap();
    let shown = |node: NodeRow| (node.id.to_string(), node.json.to_string());
    nodes.into_iter().map(shown).collect()
}

fn pairs(nodes: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(id, json): &(&str, &str)| ((*id).to_owned(), (*json).to_owned());
    nodes.iter().map(owned).collect()
}

async fn record(store: &Shared, task: &str, nodes: Vec<NodeRow>) -> bool {
    let (ada, task) = (scope("ada"), task.into());
    store.record_nodes(&ada, &task, nodes).await.unwrap()
}

async fn task(store: &Shared, id: &str) -> Draft {
    let mut draft = Draft::new("ada", id, 0);
    store.create(draft.create()).await.unwrap();
    draft
}

pub(crate) async fn nodes_stay_where_they_were_first_written(store: &Shared) {
    task(store, "t").await;
    task(store, "u").await;
    let odd = "\0\u{ffff}0";
    assert!(record(store, "t", vec![node("b", "1"), node("a", "2")]).await);
    assert!(record(store, "u", vec![node("b", "other")]).await);
    assert!(record(store, "t", vec![node(odd, odd), node("b", "3")]).await);
    assert!(record(store, "t", vec![]).await);
    let twice = vec![node("c", "4"), node("c", "5")];
    assert!(record(store, "t", twice).await);
    assert_eq!(
        shown(store, "t").await,
        pairs(&[("b", "3"), ("a", "2"), (odd, odd), ("c", "5")])
    );
    assert_eq!(shown(store, "u").await, pairs(&[("b", "other")]));
}

pub(crate) async fn nodes_belong_to_a_task_of_their_scope(store: &Shared) {
    let draft = task(store, "t").await;
    assert!(record(store, "t", vec![node("a", "1")]).await);
    assert!(!record(store, "nobody", vec![node("a", "1")]).await);
    assert_eq!(shown(store, "nobody").await, []);
    let mut other_agent = scope("ada");
    other_agent.agent = "other".into();
    let mut other_workspace = scope("ada");
    other_workspace.workspace = "other".into();
    for other in [scope("bob"), other_agent, other_workspace] {
        let id = draft.id();
        let written = store.record_nodes(&other, &id, vec![node("a", "2")]).await;
        assert!(!written.unwrap());
        let read = store.nodes(&other, &id).await.unwrap();
        assert_eq!(read, []);
    }
    assert_eq!(shown(store, "t").await, pairs(&[("a", "1")]));
}

pub(crate) async fn a_task_keeps_its_first_nodes(store: &Shared) {
    task(store, "t").await;
    let many = |from: usize, to: usize, json: &str| {
        let ids = from..to;
        ids.map(|n| node(&format!("n{n}"), json)).collect()
    };
    assert!(record(store, "t", many(0, MOST - 1, "begun")).await);
    assert!(record(store, "t", many(MOST - 1, MOST + 5, "begun")).await);
    let ended = vec![node("n3", "ended"), node("n2003", "ended")];
    assert!(record(store, "t", ended).await);
    let kept = shown(store, "t").await;
    assert_eq!(kept.len(), MOST);
    for (n, (id, json)) in kept.iter().enumerate() {
        let expected = if n == 3 { "ended" } else { "begun" };
        assert_eq!((id, json.as_str()), (&format!("n{n}"), expected));
    }
}

pub(crate) async fn nodes_go_with_their_task(store: &Shared) {
    let mut draft = task(store, "t").await;
    task(store, "open").await;
    for task in ["t", "open"] {
        record(store, task, vec![node("a", "1")]).await;
    }
    store.append(draft.complete(100)).await.unwrap();
    record(store, "t", vec![node("b", "2")]).await;
    for (kind, left) in [(SweepKind::Compact, 2), (SweepKind::Expire, 0)] {
        let sweep = Sweep {
            kind,
            before: at(200),
            from: None,
            limit: 9,
        };
        assert_eq!(store.sweep(sweep).await.unwrap().tasks.len(), 1);
        assert_eq!(shown(store, "t").await.len(), left, "{kind:?}");
    }
    assert!(!record(store, "t", vec![node("a", "1")]).await);
    task(store, "t").await;
    assert_eq!(shown(store, "t").await, [], "nothing comes back");
    assert_eq!(shown(store, "open").await.len(), 1);
}

pub(crate) async fn large_nodes_are_refused(store: &Shared) {
    task(store, "t").await;
    let (ada, id) = (scope("ada"), TaskId::from("t"));
    let large = "x".repeat((1 << 20) + 1);
    for wrong in [node("b", &large), node(&"n".repeat(257), "1")] {
        let refused = store
            .record_nodes(&ada, &id, vec![node("a", "1"), wrong])
            .await;
        assert!(
            matches!(refused, Err(StoreError::TooLarge { .. })),
            "{refused:?}"
        );
    }
    let refused = store.record_nodes(&ada, &id, vec![node("", "1")]).await;
    assert!(
        matches!(refused, Err(StoreError::Corrupt(_))),
        "{refused:?}"
    );
    assert_eq!(shown(store, "t").await, []);
    assert!(record(store, "t", vec![node("a", &large[1..])]).await);
}
