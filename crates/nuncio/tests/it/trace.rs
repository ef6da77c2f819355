//! `nuncio task trace`: what the runs of a task have done.

use serde_json::{Value, json};

use crate::fake::{Fake, Request};
use crate::support::{Said, Server, nuncio, run, until};

/// Two callers with the keys `alpha` and `beta`, and a model that asks an agent at `far`.
fn near(far: &Server) -> Server {
    Server::configured(&format!(
        r#"
[outbound]
allow_networks = ["127.0.0.0/8"]

[[auth.keys]]
sha256 = "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8"
caller = "a"

[[auth.keys]]
sha256 = "f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753"
caller = "b"

[models.demo]
provider = "fake"
rules = [
    {{ when = {{ text_contains = "order" }}, reply = [
        {{ tool = {{ name = "far", arguments = {{ message = "is it there?" }} }} }},
    ] }},
    {{ when = {{ after_tool = "far" }}, reply = [{{ text = "They say: {{result}}" }}] }},
]

[[agents]]
id = "desk"
kind = "model"
model = "demo"
members = ["far"]
reruns = true
trace_content = true

[[agents]]
id = "closed"
kind = "model"
model = "demo"
members = ["far"]

[[agents]]
id = "far"
kind = "a2a"
url = "{}"
"#,
        far.url
    ))
}

fn trace(server: &Server, key: &str, more: &[&str]) -> Said {
    let more = [&["--api-key", key], more].concat();
    server.run(&["task", "trace"], &more)
}

fn named<'t>(tree: &'t Value, name: &str) -> &'t Value {
    let nodes = tree["nodes"].as_array().unwrap();
    let found = nodes.iter().find(|node| node["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {tree:#}"))
}

/// Agents, models, tools and calls of agents elsewhere stand below each other; content on demand.
#[test]
fn the_call_tree_names_each_step_and_the_tasks_elsewhere() {
    let far = Server::echo();
    let server = near(&far);
    let sent = server.send(&["--api-key", "alpha", "my order"]).exits(0);
    assert!(sent.out.contains("They say: is it there?"), "{sent:?}");
    let id = sent.field("Task ID");
    // The tree is kept a moment after the task has ended.
    let tree = || {
        trace(&server, "alpha", &[&id, "-o", "json"])
            .exits(0)
            .json()
    };
    until(|| {
        tree()["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .all(|node| node["ended"].is_string())
    });
    let tree = tree();
    assert_eq!(tree["task"], id.as_str());
    assert_eq!(tree["context"], sent.field("Context ID").as_str());
    assert_eq!(tree["trace"].as_str().unwrap().len(), 32);
    let root = named(&tree, "invoke_agent desk");
    let tool = named(&tree, "execute_tool far");
    let remote = named(&tree, "invoke_agent far");
    assert_eq!(tool["parent"], root["id"]);
    assert_eq!(
        (&remote["parent"], &remote["kind"]),
        (&tool["id"], &json!("remote"))
    );
    assert_eq!(remote["attempt"], 1);
    assert!(remote["durationMs"].is_u64(), "{remote}");
    assert!(
        tool.get("input").is_none() && tool.get("trace").is_none(),
        "{tool}"
    );
    let model = tree["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|node| node["kind"] == "model");
    let tokens = &model.unwrap()["attributes"]["gen_ai.usage.input_tokens"];
    assert!(tokens.as_u64() > Some(0), "{tree:#}");

    // The task that the call has made elsewhere is that one.
    let there = remote["attributes"]["a2a.remote.task.id"].as_str().unwrap();
    let there = far.run(&["task", "get"], &[there]).exits(0);
    assert!(there.out.contains("is it there?"), "{there:?}");

    let text = trace(&server, "alpha", &[&id]).exits(0);
    assert_eq!(text.field("Task ID"), id);
    let shown: Vec<_> = text
        .out
        .lines()
        .skip_while(|line| *line != "Steps:")
        .collect();
    assert!(
        shown[1].starts_with("  invoke_agent desk [agent] "),
        "{text:?}"
    );
    let model = shown[2];
    assert!(
        model.starts_with("    chat ") && model.contains(" [model] "),
        "{text:?}"
    );
    assert!(model.contains(" tokens in, "), "{text:?}");
    assert!(
        text.out.contains("\n    execute_tool far [tool] "),
        "{text:?}"
    );
    assert!(
        text.out.contains("\n      invoke_agent far [remote] "),
        "{text:?}"
    );
    let remote = remote["attributes"]["a2a.remote.task.id"].as_str().unwrap();
    assert!(
        text.out.contains(&format!(", remote task {remote}\n")),
        "{text:?}"
    );
    assert!(!text.out.contains("is it there?"), "{text:?}");
    let content = trace(&server, "alpha", &[&id, "--content"]).exits(0).out;
    assert!(
        content.contains("input: {\"message\":\"is it there?\"}\n"),
        "{content}"
    );

    // Unless the agent says so, callers see no instructions and no results of tools.
    let url = format!("{}/agents/closed", server.url);
    let closed = ["-a", &url, "--api-key", "alpha"];
    let mut send = crate::support::nuncio(server.folder.path());
    send.arg("send").args(closed).arg("my order");
    let id = crate::support::run(send, "").exits(0).field("Task ID");
    until(|| {
        let mut trace = crate::support::nuncio(server.folder.path());
        trace
            .args(["task", "trace"])
            .args(closed)
            .args([&id, "--content"]);
        let out = crate::support::run(trace, "").exits(0).out;
        assert!(!out.contains("is it there?"), "{out}");
        out.contains("execute_tool far")
    });
}

/// Another caller is told what is told of a task that never was.
#[test]
fn another_caller_finds_no_task() {
    let far = Server::echo();
    let server = near(&far);
    let sent = server.send(&["--api-key", "alpha", "my order"]).exits(0);
    let id = sent.field("Task ID");
    let foreign = trace(&server, "beta", &[&id, "-o", "json"]).exits(1).json();
    let absent = trace(&server, "beta", &["nope", "-o", "json"])
        .exits(1)
        .json();
    assert_eq!(foreign["error"]["code"], "TaskNotFoundError");
    assert_eq!(foreign["error"]["a2aCode"], -32001);
    let told = foreign["error"]["message"]
        .as_str()
        .unwrap()
        .replace(&id, "nope");
    assert_eq!(told, absent["error"]["message"].as_str().unwrap());
    trace(&server, "wrong", &[&id]).exits(4);
}

/// A task again, with the tool's call changed: nothing else is asked for anew.
#[test]
fn a_task_runs_again_from_a_step() {
    let far = Server::echo();
    let server = near(&far);
    let sent = server.send(&["--api-key", "alpha", "my order"]).exits(0);
    let id = sent.field("Task ID");
    let tree = || {
        trace(&server, "alpha", &[&id, "-o", "json"])
            .exits(0)
            .json()
    };
    until(|| tree()["nodes"].as_array().unwrap().len() == 5);
    let tool = named(&tree(), "execute_tool far")["id"].clone();
    let tool = tool.as_str().unwrap();
    let rerun = |key: &str, more: &[&str]| {
        let more = [&["--api-key", key, &id], more].concat();
        server.run(&["task", "rerun"], &more)
    };
    let calls = || far.run(&["task", "list"], &["-o", "json"]).exits(0).json()["totalSize"].clone();

    let given = rerun(
        "alpha",
        &["--node", tool, "--result", "\"nobody is there\""],
    )
    .exits(0);
    assert!(given.out.contains("They say: nobody is there"), "{given:?}");
    assert_eq!(given.field("Context ID"), sent.field("Context ID"));
    assert_ne!(given.field("Task ID"), id);
    assert_eq!(calls(), 1);
    let input = "{\"message\": \"and now?\"}";
    let made = rerun("alpha", &["--node", tool, "--input", input]).exits(0);
    assert!(made.out.contains("They say: and now?"), "{made:?}");
    assert_eq!(calls(), 2);

    let tasks = || {
        let listed = server.run(&["task", "list"], &["--api-key", "alpha", "-o", "json"]);
        listed.exits(0).json()["totalSize"].clone()
    };
    assert_eq!(tasks(), 3);
    let foreign = rerun("beta", &["--node", tool, "--input", input, "-o", "json"]).exits(1);
    assert_eq!(foreign.json()["error"]["code"], "TaskNotFoundError");
    let unknown = rerun("alpha", &["--node", "nope", "--input", input]).exits(2);
    assert!(unknown.err.contains("no step nope"), "{unknown:?}");
    rerun("alpha", &["--node", tool]).exits(2);
    rerun("alpha", &["--node", tool, "--input", "no json"]).exits(2);
    assert_eq!((tasks(), calls()), (json!(3), json!(2)));
}

/// A run without a step has no tree: that is no failure.
#[test]
fn a_task_without_steps_says_so() {
    let server = Server::echo();
    let sent = server.send(&["hello"]).exits(0);
    let id = sent.field("Task ID");
    let said = server.run(&["task", "trace"], &[&id]).exits(0);
    assert_eq!(said.field("Steps"), "none");
    assert_eq!(said.field("Context ID"), sent.field("Context ID"));
}

/// An agent of another make knows nothing of trees, and takes the address for a task's.
#[test]
fn an_agent_without_call_trees_is_named_as_one() {
    let card = json!({"supportedInterfaces": [
        {"url": "/", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
    ]});
    let fake = Fake::with_card(card, |request: &Request| {
        let task =
            json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}});
        if request.line.starts_with("GET /tasks/t?") {
            return ("200 OK", "application/json", task.to_string());
        }
        let info = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "TASK_NOT_FOUND", "domain": "a2a-protocol.org"});
        let error = json!({"error": {"code": 404, "status": "NOT_FOUND", "message": "no task",
            "details": [info]}});
        ("404 Not Found", "application/json", error.to_string())
    });
    let said = |id: &str| {
        let folder = tempfile::tempdir().unwrap();
        let mut command = nuncio(folder.path());
        command.args(["task", "trace", "-a", &fake.url, "-o", "json", id]);
        run(command, "").exits(1).json()["error"].clone()
    };
    let none = said("t");
    assert_eq!(none["code"], "UnsupportedOperationError");
    assert!(
        none["message"]
            .as_str()
            .unwrap()
            .contains("shows no call trees"),
        "{none}"
    );
    assert_eq!(said("other")["code"], "TaskNotFoundError");
}
