//! The eight combinations of MemoryLake's A2A page, with bodies as the page shows them: two
//! versions, send and stream, HTTP+JSON and JSON-RPC, at one address.

use serde_json::{Value, json};

use crate::support::{Exchange, Server, exchange};

const BASE: &str = "/openapi/memorylake/api/v3/workspaces/ws_abc123/agents/agt_r8k2m1n3/a2a";

fn server() -> Server {
    Server::example("memorylake")
}

/// What the page puts besides the message.
fn with(message: Value) -> Value {
    json!({
        "message": message,
        "configuration": {"blocking": true, "historyLength": 10},
        "metadata": {"memorylake": {
            "actorId": "act_1",
            "readWriteProjectId": "proj_1",
            "readOnlyProjectIds": ["proj_2", "proj_3"],
            "overrides": {"model": "fast", "maxTurns": 5}
        }}
    })
}

fn rpc(method: &str, message: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": "1", "method": method, "params": with(message)})
}

fn post(server: &Server, path: &str, headers: &[(&str, &str)], body: &Value) -> Exchange {
    let mut all = vec![
        ("Authorization", "Bearer sk_xxxxxx"),
        ("Content-Type", "application/json"),
    ];
    all.extend(headers);
    exchange(
        &server.url,
        "POST",
        &format!("{BASE}{path}"),
        &all,
        &body.to_string(),
    )
}

/// The JSON of each event.
fn events(reply: &Exchange) -> Vec<Value> {
    assert_eq!(
        reply.header("content-type"),
        Some("text/event-stream"),
        "{reply:?}"
    );
    let data = reply
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    data.map(|text| serde_json::from_str(text).unwrap())
        .collect()
}

/// What the agent was given, found in the artifacts of a task of either version.
fn received(artifacts: &Value) -> Value {
    let parts = artifacts
        .as_array()
        .unwrap()
        .iter()
        .map(|artifact| &artifact["parts"][0]);
    let data = parts.map(|part| &part["data"]).find(|data| !data.is_null());
    data.expect("a data part").clone()
}

#[track_caller]
fn whole(given: &Value) {
    assert_eq!(given["metadata"], with(Value::Null)["metadata"]);
    assert_eq!(given["contextId"], "ctx-1");
}

const HEADER_1_0: &[(&str, &str)] = &[("A2A-Version", "1.0")];

/// REST 1.0: no version header and no messageId, plain paths.
#[test]
fn version_1_0_send_over_rest() {
    let server = server();
    let message = json!({"role": "ROLE_USER", "contextId": "ctx-1", "parts": [{"text": "hello"}]});
    let reply = post(&server, "/message:send", &[], &with(message));
    let task = &reply.json()["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{reply:?}");
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "hello");
    assert!(!task["history"][0]["messageId"].as_str().unwrap().is_empty());
    whole(&received(&task["artifacts"]));
}

#[test]
fn version_1_0_stream_over_rest() {
    let server = server();
    let message = json!({"role": "ROLE_USER", "contextId": "ctx-1", "parts": [{"text": "hello"}]});
    let reply = post(&server, "/message:stream", &[], &with(message));
    let events = events(&reply);
    assert!(events[0]["task"].is_object(), "{reply:?}");
    let last = events.last().unwrap();
    assert_eq!(
        last["statusUpdate"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
    let mut given = events
        .iter()
        .map(|event| &event["artifactUpdate"]["artifact"]["parts"][0]["data"]);
    whole(given.rfind(|data| !data.is_null()).unwrap());
}

/// REST 0.3: the same verbs under `/v1`, `message.content`.
#[test]
fn version_0_3_send_over_rest() {
    let server = server();
    let message =
        json!({"role": "ROLE_USER", "contextId": "ctx-1", "content": [{"text": "hello"}]});
    let reply = post(&server, "/v1/message:send", &[], &with(message));
    let task = &reply.json()["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{reply:?}");
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "hello");
    let data = &task["artifacts"][1]["parts"][0]["data"]["data"];
    whole(data);
}

#[test]
fn version_0_3_stream_over_rest() {
    let server = server();
    let message =
        json!({"role": "ROLE_USER", "contextId": "ctx-1", "content": [{"text": "hello"}]});
    let reply = post(&server, "/v1/message:stream", &[], &with(message));
    let events = events(&reply);
    assert!(events[0]["task"].is_object(), "{reply:?}");
    let last = &events.last().unwrap()["statusUpdate"];
    assert_eq!(last["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(last["final"], true);
}

/// JSON-RPC: one address, the version known by the method.
#[test]
fn version_1_0_send_over_json_rpc() {
    let server = server();
    let message = json!({
        "messageId": "msg-1", "role": "ROLE_USER", "contextId": "ctx-1", "parts": [{"text": "hello"}]
    });
    for headers in [HEADER_1_0, &[]] {
        let reply = post(&server, "", headers, &rpc("SendMessage", message.clone()));
        let task = &reply.json()["result"]["task"];
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{reply:?}");
        whole(&received(&task["artifacts"]));
    }
}

#[test]
fn version_1_0_stream_over_json_rpc() {
    let server = server();
    let message = json!({
        "messageId": "msg-2", "role": "ROLE_USER", "contextId": "ctx-1", "parts": [{"text": "hello"}]
    });
    let reply = post(
        &server,
        "",
        HEADER_1_0,
        &rpc("SendStreamingMessage", message),
    );
    let events = events(&reply);
    assert!(events[0]["result"]["task"].is_object(), "{reply:?}");
    let last = &events.last().unwrap()["result"]["statusUpdate"];
    assert_eq!(last["status"]["state"], "TASK_STATE_COMPLETED");
}

#[test]
fn version_0_3_send_over_json_rpc() {
    let server = server();
    let message = json!({
        "messageId": "msg-3", "kind": "message", "role": "user", "contextId": "ctx-1",
        "parts": [{"kind": "text", "text": "hello"}]
    });
    let reply = post(&server, "", &[], &rpc("message/send", message));
    let task = &reply.json()["result"];
    assert_eq!(
        (&task["kind"], &task["status"]["state"]),
        (&json!("task"), &json!("completed"))
    );
    assert_eq!(
        task["artifacts"][0]["parts"][0],
        json!({"kind": "text", "text": "hello"})
    );
    whole(&received(&task["artifacts"]));
}

#[test]
fn version_0_3_stream_over_json_rpc() {
    let server = server();
    let message = json!({
        "messageId": "msg-4", "kind": "message", "role": "user", "contextId": "ctx-1",
        "parts": [{"kind": "text", "text": "hello"}]
    });
    let reply = post(&server, "", &[], &rpc("message/stream", message));
    let events = events(&reply);
    assert_eq!(events[0]["result"]["kind"], "task", "{reply:?}");
    let last = &events.last().unwrap()["result"];
    assert_eq!(last["kind"], "status-update");
    assert_eq!(
        (&last["status"]["state"], &last["final"]),
        (&json!("completed"), &json!(true))
    );
}

/// A body of one version on the other's path is refused with a hint.
#[test]
fn bodies_of_the_other_version_are_refused() {
    let server = server();
    for (path, member, version) in [
        ("/message:send", "content", "0.3"),
        ("/v1/message:send", "parts", "1.0"),
    ] {
        let message = json!({"role": "ROLE_USER", member: [{"text": "hello"}]});
        let reply = post(&server, path, &[], &with(message));
        assert_eq!(reply.status, 400, "{reply:?}");
        assert!(
            reply.body.contains(member) && reply.body.contains(version),
            "{reply:?}"
        );
    }
}

/// Both spellings of the configuration, in both versions.
#[test]
fn not_waiting_is_said_in_either_spelling() {
    let server = server();
    let bodies = [
        ("/message:send", "parts", json!({"blocking": false})),
        ("/message:send", "parts", json!({"returnImmediately": true})),
        ("/v1/message:send", "content", json!({"blocking": false})),
    ];
    for (path, member, configuration) in bodies {
        let body = json!({
            "message": {"role": "ROLE_USER", member: [{"text": "hello"}]},
            "configuration": configuration
        });
        let reply = post(&server, path, &[], &body);
        let state = reply.json()["task"]["status"]["state"].clone();
        assert!(
            state == "TASK_STATE_SUBMITTED" || state == "TASK_STATE_WORKING",
            "{reply:?}"
        );
    }
}

/// Elsewhere a message needs its id, and the workspace is the key's alone.
#[test]
fn only_this_address_makes_up_message_ids_and_only_for_its_workspace() {
    let server = server();
    let body = json!({"message": {"role": "ROLE_USER", "parts": [{"text": "hello"}]}}).to_string();
    let headers = [
        ("Authorization", "Bearer sk_xxxxxx"),
        ("Content-Type", "application/json"),
    ];
    let ask = |path: &str| exchange(&server.url, "POST", path, &headers, &body);
    for path in [
        "/workspaces/ws_abc123/agents/agt_r8k2m1n3/a2a/message:send",
        "/agents/agt_r8k2m1n3/message:send",
        "/message:send",
    ] {
        let reply = ask(path);
        assert!(
            reply.status == 400 && reply.body.contains("message.messageId"),
            "{path}: {reply:?}"
        );
    }
    let missing = ask("/workspaces/other/agents/agt_r8k2m1n3/a2a/message:send");
    assert_eq!(missing.status, 404, "{missing:?}");
    let unknown = ask(&format!("{BASE}x/message:send"));
    assert_eq!(unknown.status, 404, "{unknown:?}");
    let nobody = exchange(
        &server.url,
        "POST",
        &format!("{BASE}/message:send"),
        &[],
        &body,
    );
    assert_eq!(nobody.status, 401, "{nobody:?}");
}

/// The card stands beside the address, and lists both versions at it.
#[test]
fn the_card_names_this_address_in_both_versions() {
    let server = server();
    let path = BASE.replace("/a2a", "/.well-known/agent-card.json");
    let reply = exchange(&server.url, "GET", &path, &[("A2A-Version", "1.0")], "");
    let card = reply.json();
    let interfaces = card["supportedInterfaces"].as_array().unwrap();
    let url = format!("{}{BASE}", server.url);
    for version in ["1.0", "0.3"] {
        for binding in ["JSONRPC", "HTTP+JSON"] {
            let listed = interfaces.iter().any(|interface| {
                interface["url"] == url
                    && interface["protocolBinding"] == binding
                    && interface["protocolVersion"] == version
            });
            assert!(listed, "{binding} {version}: {card}");
        }
    }
    let older = exchange(&server.url, "GET", &path, &[("A2A-Version", "0.3")], "").json();
    assert_eq!(
        (&older["url"], &older["protocolVersion"]),
        (&json!(url), &json!("0.3.0"))
    );
}
