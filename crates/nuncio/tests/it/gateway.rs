//! Agents elsewhere behind a server, over the wire: which headers they see, and whose tasks are whose.

use serde_json::{Value, json};

use crate::fake::{Fake, Request, events};
use crate::support::{Exchange, Server, exchange, until};

fn post(server: &Server, path: &str, more: &[(&str, &str)], body: &Value) -> Exchange {
    let mut headers = vec![("Content-Type", "application/json"), ("A2A-Version", "1.0")];
    headers.extend(more);
    exchange(&server.url, "POST", path, &headers, &body.to_string())
}

fn message(id: &str, text: &str) -> Value {
    json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]})
}

fn agent(id: &str, url: &str, more: &str) -> String {
    format!("[[agents]]\nid = \"{id}\"\nkind = \"a2a\"\nurl = \"{url}\"\n{more}\n")
}

const OUTBOUND: &str = "[outbound]\nallow_networks = [\"127.0.0.0/8\"]\n";

fn task(state: &str) -> Value {
    json!({"id": "far", "contextId": "c", "status": {"state": state}})
}

/// An agent whose stream breaks off and that gives none again, so that it is asked in all ways.
fn breaking_off(request: &Request) -> crate::fake::Answer {
    let asked: Value = serde_json::from_str(&request.body).unwrap();
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
    let json = "application/json";
    match asked["method"].as_str().unwrap() {
        "SendStreamingMessage" => {
            let event = json!({"task": task("TASK_STATE_WORKING")});
            ("200 OK", "text/event-stream", events(&[event]))
        }
        "GetTask" => (
            "200 OK",
            json,
            result(task("TASK_STATE_WORKING")).to_string(),
        ),
        "CancelTask" => (
            "200 OK",
            json,
            result(task("TASK_STATE_CANCELED")).to_string(),
        ),
        _ => {
            let error = json!({"code": -32004, "message": "no streams"});
            let body = json!({"jsonrpc": "2.0", "id": asked["id"], "error": error});
            ("200 OK", json, body.to_string())
        }
    }
}

/// BR-164, BR-150: what is configured reaches the agent with a message, a subscription, a poll and a
/// cancel; of the caller's headers those that are let through, and no other.
#[test]
fn br_164_an_agent_elsewhere_sees_allowed_headers_only() {
    let upstream = Fake::answering(breaking_off);
    let more = "headers = { X-Fixed = \"f\" }\nbearer = \"ours\"\nforward_headers = [\"X-Team\", \"X-Fixed\"]";
    let server = Server::configured(&format!("{OUTBOUND}{}", agent("u", &upstream.url, more)));
    let theirs = [
        ("X-Team", "blue"),
        ("X-Fixed", "theirs"),
        ("X-Other", "secret"),
        ("Cookie", "a=secret"),
    ];
    let body =
        json!({"message": message("m1", "go"), "configuration": {"returnImmediately": true}});
    let sent = post(&server, "/agents/u/message:send", &theirs, &body).json();
    let id = sent["task"]["id"].as_str().unwrap();
    let methods = |name: &str| {
        upstream
            .requests()
            .iter()
            .any(|asked| asked.body.contains(name))
    };
    until(|| methods("GetTask"));
    let canceled = post(
        &server,
        &format!("/agents/u/tasks/{id}:cancel"),
        &[],
        &json!({}),
    );
    assert_eq!(canceled.json()["status"]["state"], "TASK_STATE_CANCELED");
    until(|| methods("CancelTask"));
    let requests = upstream.requests();
    for name in [
        "SendStreamingMessage",
        "SubscribeToTask",
        "GetTask",
        "CancelTask",
    ] {
        assert!(methods(name), "{name}");
    }
    for asked in requests {
        let all = |name: &str| -> Vec<&str> {
            let named = asked.headers.iter();
            let named = named.filter(|(known, _)| known.eq_ignore_ascii_case(name));
            named.map(|(_, value)| value.as_str()).collect()
        };
        let what = format!("{} {}", asked.line, asked.body);
        // A card is read without a word about us, unless it is refused so.
        if !asked.body.is_empty() {
            assert_eq!(all("authorization"), ["Bearer ours"], "{what}");
            assert_eq!(all("x-fixed"), ["f"], "{what}");
            assert_eq!(all("x-team"), ["blue"], "{what}");
        }
        assert!(!format!("{:?}", asked.headers).contains("secret"), "{what}");
    }
}

/// BR-164: what a model's agent lets through reaches the agent elsewhere that the model asks, as far as
/// that one lets it through too.
#[test]
fn br_164_an_agent_elsewhere_that_a_model_asks_sees_allowed_headers_only() {
    let upstream = Fake::answering(breaking_off);
    let far = agent(
        "far",
        &upstream.url,
        "forward_headers = [\"X-Team\", \"X-Other\"]",
    );
    let config = format!(
        "{OUTBOUND}{far}[[agents]]\nid = \"near\"\nkind = \"model\"\nmodel = \"m\"\nmembers = [\"far\"]\n\
         forward_headers = [\"X-Team\", \"X-Near\"]\n\
         [models.m]\nprovider = \"fake\"\n\
         [[models.m.rules]]\notherwise = true\n\
         reply = [{{ tool = {{ name = \"far\", arguments = {{ message = \"go\" }} }} }}]\n"
    );
    let server = Server::configured(&config);
    let theirs = [
        ("X-Team", "blue"),
        ("X-Near", "secret"),
        ("X-Other", "secret"),
        ("Cookie", "a=secret"),
    ];
    let body =
        json!({"message": message("m1", "go"), "configuration": {"returnImmediately": true}});
    post(&server, "/agents/near/message:send", &theirs, &body);
    let sent = || {
        let requests = upstream.requests();
        let sent = |asked: &&Request| asked.body.contains("SendStreamingMessage");
        requests.iter().find(sent).cloned()
    };
    until(|| sent().is_some());
    let headers = format!("{:?}", sent().unwrap().headers).to_lowercase();
    assert!(headers.contains("\"x-team\", \"blue\""), "{headers}");
    assert!(!headers.contains("secret"), "{headers}");
}

/// BR-165: a task belongs to the agent that made it, whatever a caller's headers say, and still after
/// the server has been killed and started again.
#[test]
fn br_165_follow_ups_reach_the_agent_that_has_the_task() {
    let asking = "[[agents]]\nid = \"asker\"\nkind = \"script\"\n[[agents.rules]]\notherwise = true\n\
                  steps = [{ pause = { prompt = \"which?\", on_answer = [{ status = \"that one\" }] } }]\n";
    let (one, two) = (Server::configured(asking), Server::configured(asking));
    let config = format!(
        "{OUTBOUND}{}{}",
        agent("one", &one.url, ""),
        agent("two", &two.url, "")
    );
    let server = Server::configured(&config);
    let body = json!({"message": message("m1", "go")});
    let asked = post(&server, "/agents/two/message:send", &[], &body).json()["task"].clone();
    assert_eq!(
        asked["status"]["state"], "TASK_STATE_INPUT_REQUIRED",
        "{asked}"
    );
    let id = asked["id"].as_str().unwrap().to_owned();
    let folder = server.crash();
    let file = folder.path().join("nuncio.toml");
    let server = Server::start_in(folder, &["--config".as_ref(), file.as_os_str()]);
    let spoofed = [
        ("X-Agent", "one"),
        ("X-Upstream", "one"),
        ("X-Nuncio-Agent", "one"),
    ];
    let got = exchange(
        &server.url,
        "GET",
        &format!("/agents/one/tasks/{id}"),
        &spoofed,
        "",
    );
    assert_eq!(got.status, 404, "it is not the other agent's task");
    let mut answer = message("m2", "the red one");
    answer["taskId"] = json!(id);
    let body = json!({ "message": answer });
    let done = post(&server, "/agents/two/message:send", &spoofed, &body).json()["task"].clone();
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    let tasks = |of: &Server| exchange(&of.url, "GET", "/tasks", &[], "").json()["tasks"].clone();
    assert_eq!(tasks(&one).as_array().unwrap().len(), 0);
    let there = tasks(&two);
    assert_eq!(there.as_array().unwrap().len(), 1, "{there}");
    assert_eq!(
        there[0]["status"]["state"], "TASK_STATE_COMPLETED",
        "{there}"
    );
}
