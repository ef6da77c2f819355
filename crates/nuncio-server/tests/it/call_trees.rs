//! Call trees at `/tasks/{id}:trace`: whoever gets the task gets its tree.

use std::sync::Arc;

use nuncio_protocol::{Call, Reply, Task};
use nuncio_server::{ApiKey, Authenticator, CallTrees, Endpoint};
use serde_json::{Value, json};

use crate::fake::Fake;
use crate::harness::{Answer, Served, Setup, card, serve, sha256};

/// Tells for whom it was asked.
#[derive(Debug)]
struct Told;

impl CallTrees for Told {
    fn call_tree(&self, call: Call, task: Task) -> Reply<'_, Value> {
        let node = json!({"id": "n1", "input": {"secret": 1}, "output": "o", "name": "chat"});
        let tree = json!({"task": task.id, "caller": call.caller.id, "nodes": [node]});
        Box::pin(async move { Ok(tree) })
    }
}

/// `echo` in every workspace, `inner` in `red` only; a caller in `red` and one in `blue`.
async fn served() -> Served {
    let key = |secret: &str, workspace: &str| {
        ApiKey::from_sha256(&sha256(secret), secret, workspace).unwrap()
    };
    let mut setup = Setup::default();
    setup.authenticator = Authenticator::with_keys([key("rita", "red"), key("bob", "blue")]);
    setup.shape = |endpoint| endpoint.with_call_trees(Arc::new(Told));
    let served = setup.start().await;
    let inner = Endpoint::new("inner", card(), Arc::new(Fake::default()))
        .with_call_trees(Arc::new(Told))
        .with_workspaces(["red"]);
    served.server.switchboard().insert(inner).unwrap();
    served
}

async fn get(served: &Served, who: &str, path: &str) -> Answer {
    served.ask("GET", path, &[("X-API-Key", who)], "").await
}

#[tokio::test]
async fn a_tree_is_where_its_task_is_for_whom_the_task_is() {
    let served = served().await;
    for base in [
        "",
        "/v1",
        "/echo",
        "/agents/echo",
        "/agents/echo/a2a",
        "/agents/echo/v1",
        "/agents/inner",
        "/workspaces/red/agents/inner/a2a",
        "/workspaces/blue/agents/echo/a2a",
        "/agents/nobody",
    ] {
        for id in ["t1", "nope", "a%3Ab", "a:b"] {
            for who in ["rita", "bob"] {
                // Some paths have an `/a2a` that belongs to no binding.
                let task = get(&served, who, &format!("{base}/tasks/{id}")).await;
                let tree = get(&served, who, &format!("{base}/tasks/{id}:trace")).await;
                assert_eq!(
                    tree.status,
                    task.status,
                    "{who} {base} {id}: {}",
                    tree.text()
                );
                match tree.status.as_u16() {
                    200 => {
                        assert_eq!(tree.json()["task"], task.json()["id"]);
                        assert_eq!(tree.json()["caller"], who);
                        assert_eq!(tree.header("content-type"), "application/json");
                    }
                    _ => assert_eq!(tree.text(), task.text(), "{who} {base} {id}"),
                }
            }
        }
    }
    let strange = get(&served, "nobody", "/tasks/t1:trace").await;
    assert_eq!(strange.status, 401);
    assert_eq!(
        strange.text(),
        get(&served, "nobody", "/tasks/t1").await.text()
    );
    let tree = get(&served, "rita", "/tasks/t1:trace").await;
    assert_eq!(tree.status, 200);
    let head = served.ask("HEAD", "/tasks/t1:trace", &[("X-API-Key", "rita")], "");
    assert_eq!(head.await.status, 200);
    let post = served.ask("POST", "/tasks/t1:trace", &[("X-API-Key", "rita")], "");
    assert_eq!(post.await.header("allow"), "GET");
}

#[tokio::test]
async fn content_is_left_out_if_it_is_not_wanted() {
    let served = served().await;
    for (query, node) in [
        (
            "",
            json!({"id": "n1", "input": {"secret": 1}, "output": "o", "name": "chat"}),
        ),
        (
            "?content=true",
            json!({"id": "n1", "input": {"secret": 1}, "output": "o", "name": "chat"}),
        ),
        ("?content=false", json!({"id": "n1", "name": "chat"})),
    ] {
        let tree = get(&served, "rita", &format!("/tasks/t1:trace{query}")).await;
        assert_eq!(tree.json()["nodes"], json!([node]), "{query}");
    }
    let wrong = get(&served, "rita", "/tasks/t1:trace?content=some").await;
    assert_eq!(
        (wrong.status.as_u16(), wrong.fields()),
        (400, vec!["content".to_owned()])
    );
}

/// At other agents `:trace` is a part of the id, as any word is that is no verb; a colon that is
/// encoded is one everywhere, and other things than tasks have no tree.
#[tokio::test]
async fn without_trees_the_path_is_that_of_a_task() {
    let plain = serve().await;
    let unknown = plain.get("/tasks/t1:trace").await;
    assert_eq!(unknown.status, 404);
    assert_eq!(unknown.reason(), "TASK_NOT_FOUND");
    assert!(unknown.text().contains("t1:trace"), "{}", unknown.text());
    let served = served().await;
    let encoded = get(&served, "rita", "/tasks/t1%3Atrace").await;
    assert!(encoded.text().contains("t1:trace"), "{}", encoded.text());
    let config = get(
        &served,
        "rita",
        "/tasks/t1/pushNotificationConfigs/p1:trace",
    )
    .await;
    assert_eq!(config.json()["id"], "p1:trace");
}
