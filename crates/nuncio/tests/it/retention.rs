//! `[retention]`: what has expired is gone for everybody.

use crate::support::{Server, exchange, until};

const BINDINGS: [&str; 3] = ["JSONRPC", "HTTP+JSON", "GRPC"];

/// SEC-07: after the purge every binding says what it says of a task that never was.
#[test]
fn an_expired_task_is_gone_in_every_binding() {
    let server = Server::configured("[retention]\ntasks = \"2s\"\nsweep_seconds = 1\n");
    let gone = server.send(&["hello"]).exits(0).field("Task ID");
    let held = server.send(&["hold", "--async"]).exits(0).field("Task ID");
    let get = |task: &str, binding| {
        let more = ["--transport", binding, "-o", "json", task];
        server.run(&["task", "get"], &more)
    };
    until(|| get(&gone, "JSONRPC").code == 1);
    for binding in BINDINGS {
        let said = get(&gone, binding).exits(1).out;
        let never = get("never-was", binding).exits(1).out;
        assert!(
            said.contains("A2A_ERR_TASK_NOT_FOUND") || said.contains("NotFound"),
            "{said}"
        );
        assert_eq!(said.replace(&gone, "never-was"), never, "{binding}");
        get(&held, binding).exits(0);
        let listed = server.run(&["task", "list"], &["--transport", binding, "-o", "json"]);
        let listed = listed.exits(0).json();
        assert_eq!(listed["totalSize"], 1, "{listed}");
        assert_eq!(listed["tasks"][0]["id"], held.as_str());
    }
}

/// BR-045: an older position of an ended task is refused with the field and what to do.
#[test]
fn br_045_an_expired_position_is_told_in_both_bindings_that_have_one() {
    let server = Server::configured("[retention]\nevents = \"1s\"\nsweep_seconds = 1\n");
    let task = server.send(&["hello"]).exits(0).field("Task ID");
    let headers = [("Last-Event-ID", "1"), ("Content-Type", "application/json")];
    let subscribe = format!("/tasks/{task}:subscribe");
    let rpc = serde_json::json!({
        "jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task}
    });
    until(|| exchange(&server.url, "POST", &subscribe, &headers, "").status == 400);
    let rest = exchange(&server.url, "POST", &subscribe, &headers, "");
    let rpc = exchange(&server.url, "POST", "/", &headers, &rpc.to_string());
    for said in [&rest.body, &rpc.body] {
        assert!(said.contains("\"field\":\"Last-Event-ID\""), "{said}");
        assert!(said.contains("GetTask"), "{said}");
    }
    let whole = server.run(&["task", "get"], &[&task]).exits(0);
    assert!(whole.out.contains("  hello\n"), "{whole:?}");
}
