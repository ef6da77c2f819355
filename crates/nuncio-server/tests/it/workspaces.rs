//! Workspaces and tenants: who finds which agent, and where.

use std::sync::Arc;

use nuncio_server::{ApiKey, Authenticator, Endpoint};
use serde_json::{Value, json};

use crate::fake::Fake;
use crate::harness::{Answer, Served, Setup, card, rpc, say, sha256};

const CARD: &str = "/.well-known/agent-card.json";

/// `echo` in every workspace, `inner` in `red` only; a caller in `red` and one in `blue`.
async fn served() -> Served {
    let key = |secret: &str, workspace: &str| {
        ApiKey::from_sha256(&sha256(secret), secret, workspace).unwrap()
    };
    let mut setup = Setup::default();
    setup.authenticator = Authenticator::with_keys([key("rita", "red"), key("bob", "blue")]);
    let served = setup.start().await;
    let inner = Endpoint::new("inner", card(), Arc::new(Fake::default())).with_workspaces(["red"]);
    served.server.switchboard().insert(inner).unwrap();
    served
}

async fn get(served: &Served, who: &str, path: &str) -> u16 {
    let answer = served.ask("GET", path, &[("X-API-Key", who)], "").await;
    answer.status.as_u16()
}

async fn call(served: &Served, who: &str, path: &str, params: &Value) -> Answer {
    let body = rpc("GetTask", params).to_string();
    served.ask("POST", path, &[("X-API-Key", who)], body).await
}

/// TEN-05, TEN-06, AUTH-08: the workspace is the credential's; elsewhere nobody is there.
#[tokio::test]
async fn callers_find_what_is_in_their_workspace() {
    let served = served().await;
    for (who, path, status) in [
        ("rita", "/workspaces/red/agents/echo/a2a/tasks/t1", 200),
        ("rita", "/workspaces/red/agents/inner/a2a/tasks/t1", 200),
        (
            "rita",
            "/openapi/memorylake/api/v3/workspaces/red/agents/inner/a2a/tasks/t1",
            200,
        ),
        (
            "rita",
            "/openapi/memorylake/api/v3/workspaces/red/agents/inner/a2a/v1/tasks/t1",
            200,
        ),
        ("rita", "/agents/inner/tasks/t1", 200),
        ("rita", "/inner/tasks/t1", 200),
        ("rita", "/red%2Finner/tasks/t1", 200),
        ("rita", "/workspaces/blue/agents/echo/a2a/tasks/t1", 404),
        ("rita", "/workspaces/nowhere/agents/echo/a2a/tasks/t1", 404),
        ("rita", "/blue%2Fecho/tasks/t1", 404),
        ("bob", "/workspaces/blue/agents/echo/a2a/tasks/t1", 200),
        ("bob", "/workspaces/red/agents/echo/a2a/tasks/t1", 404),
        ("bob", "/workspaces/blue/agents/inner/a2a/tasks/t1", 404),
        ("bob", "/agents/inner/tasks/t1", 404),
        ("bob", "/inner/tasks/t1", 404),
        ("bob", "/agents/echo/tasks/t1", 200),
    ] {
        assert_eq!(get(&served, who, path).await, status, "{who} {path}");
    }
    let foreign = served
        .ask("GET", "/agents/inner/tasks/t1", &[("X-API-Key", "bob")], "")
        .await;
    let absent = served
        .ask(
            "GET",
            "/agents/nobody/tasks/t1",
            &[("X-API-Key", "bob")],
            "",
        )
        .await;
    assert_eq!(foreign.text(), absent.text(), "SEC-02");
}

/// TEN-02, TEN-04, TEN-06: the tenant in JSON-RPC, at the root and at an agent's own address.
#[tokio::test]
async fn the_tenant_in_params_names_the_agent() {
    let served = served().await;
    for (who, path, tenant, code) in [
        ("rita", "/", "inner", 0),
        ("rita", "/", "red/inner", 0),
        ("rita", "/", "blue/inner", -32602),
        ("rita", "/", "nobody", -32602),
        ("rita", "/", "", 0),
        ("bob", "/", "inner", -32602),
        ("rita", "/agents/inner", "inner", 0),
        ("rita", "/agents/inner", "red/inner", 0),
        ("rita", "/agents/inner", "echo", -32602),
        ("rita", "/workspaces/red/agents/inner/a2a", "red/inner", 0),
    ] {
        let answer = call(&served, who, path, &json!({"id": "t1", "tenant": tenant})).await;
        assert_eq!(
            answer.code(),
            code,
            "{who} {path} {tenant}: {}",
            answer.text()
        );
        if code != 0 {
            assert_eq!(answer.fields(), ["tenant"]);
        }
    }
}

/// BR-105: lists and cards show a workspace's agents; cards name the address they were got by.
#[tokio::test]
async fn lists_and_cards_belong_to_the_address() {
    let served = served().await;
    let list = |who: &'static str| {
        let served = &served;
        async move {
            let answer = served
                .ask("GET", "/agents", &[("X-API-Key", who)], "")
                .await
                .json();
            let agents = answer["agents"].as_array().unwrap().iter();
            agents
                .map(|agent| agent["id"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        }
    };
    assert_eq!(list("rita").await, ["echo", "inner"]);
    assert_eq!(list("bob").await, ["echo"]);
    for (path, status) in [
        ("/workspaces/red/agents/inner", 200),
        ("/workspaces/red/agents/inner/a2a", 200),
        (
            "/openapi/memorylake/api/v3/workspaces/red/agents/inner",
            200,
        ),
        ("/workspaces/blue/agents/inner", 404),
        ("/workspaces/nowhere/agents/echo", 404),
    ] {
        let answer = served.get(&format!("{path}{CARD}")).await;
        assert_eq!(answer.status, status, "{path}");
        if status == 200 {
            let card = answer.json();
            let base = path.trim_end_matches("/a2a");
            let url = format!("http://{}{base}/a2a", served.address);
            assert_eq!(card["supportedInterfaces"][0]["url"], url);
            assert_eq!(
                card["supportedInterfaces"][2]["tenant"], "red/inner",
                "gRPC"
            );
        }
    }
}

/// Only MemoryLake's address makes up what its callers leave out.
#[tokio::test]
async fn message_ids_are_made_up_at_one_address_only() {
    let served = served().await;
    let mut body = say("hi");
    body["message"].as_object_mut().unwrap().remove("messageId");
    let headers = [("X-API-Key", "rita"), ("Content-Type", "application/json")];
    let send = |path: &'static str| {
        let (served, body) = (&served, body.to_string());
        async move { served.ask("POST", path, &headers, body).await }
    };
    let lenient = "/openapi/memorylake/api/v3/workspaces/red/agents/echo/a2a/message:send";
    assert_eq!(send(lenient).await.status, 200);
    let sent = served.fake.last_send().message.unwrap();
    assert_eq!(sent.message_id.as_str(), "id-1");
    for strict in [
        "/workspaces/red/agents/echo/a2a/message:send",
        "/agents/echo/message:send",
    ] {
        let answer = send(strict).await;
        assert_eq!(answer.status, 400);
        assert_eq!(answer.fields(), ["message.messageId"]);
    }
}
