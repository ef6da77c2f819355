//! Agents that a model speaks for, from a configuration to an answer over the wire.

use serde_json::{Value, json};

use crate::support::{Server, exchange, nuncio, run};

const SUPPORT: &str = r#"
[models.demo]
provider = "fake"
rules = [
    { when = { text_contains = "order" }, reply = [
        { text = "Let me see. " },
        { tool = { name = "ask_user", arguments = { question = "Have you got a photo?" } } },
    ] },
    { when = { after_tool = "ask_user" }, reply = [{ text = "A new one is on its way ({result})." }] },
]

[[agents]]
id = "support"
kind = "model"
model = "demo"
ask_user = true
instructions = "You are {agent.name}."
"#;

fn send(server: &Server, text: &str, task: Option<&str>) -> Value {
    let mut message = json!({"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}]});
    if let Some(task) = task {
        message["taskId"] = task.into();
    }
    let body = json!({"message": message}).to_string();
    let headers = [("Content-Type", "application/json"), ("A2A-Version", "1.0")];
    let path = "/agents/support/message:send";
    let sent = exchange(&server.url, "POST", path, &headers, &body);
    assert_eq!(sent.status, 200, "{sent:?}");
    sent.json()["task"].clone()
}

/// BR-174 with the real binary: it is killed between the question and the answer.
#[test]
fn br_174_a_question_outlives_a_kill() {
    let server = Server::configured(SUPPORT);
    let waiting = send(&server, "my order is broken", None);
    assert_eq!(
        waiting["status"]["state"], "TASK_STATE_INPUT_REQUIRED",
        "{waiting}"
    );
    let asked = &waiting["status"]["message"]["parts"][0]["text"];
    assert_eq!(asked, "Have you got a photo?");
    let folder = server.crash();

    let config = folder.path().join("nuncio.toml");
    let server = Server::start_in(folder, &["--config".as_ref(), config.as_os_str()]);
    let done = send(&server, "photo.png", waiting["id"].as_str());
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    let parts = done["artifacts"].as_array().unwrap().last().unwrap()["parts"]
        .as_array()
        .unwrap();
    let text: String = parts
        .iter()
        .filter_map(|part| part["text"].as_str())
        .collect();
    assert_eq!(text, "A new one is on its way (photo.png).");
    let usage = &done["artifacts"].as_array().unwrap().last().unwrap()["metadata"]["usage"];
    assert!(usage["inputTokens"].as_u64() > Some(0), "{done}");
}

const DELEGATING: &str = r#"
[models.boss]
provider = "fake"
rules = [
    { when = { has_tool = "worker", turn = 1 }, reply = [{ tool = { name = "worker", arguments = { message = "do it" } } }] },
    { when = { after_tool = "worker" }, reply = [{ text = "The worker says: {result}" }] },
]

[[agents]]
id = "support"
kind = "model"
model = "boss"
members = ["worker"]

[[agents]]
id = "worker"
kind = "echo"
"#;

/// A model asks another agent of the server as it calls a tool.
#[test]
fn a_model_asks_another_agent() {
    let server = Server::configured(DELEGATING);
    let done = send(&server, "please", None);
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    let text = done["artifacts"][0]["parts"].to_string();
    for piece in ["The ", "worker ", "says: ", "do ", "it"] {
        assert!(text.contains(piece), "{text}");
    }
}

/// Who would be asked by way of itself is refused before anything is served.
#[test]
fn br_172_agents_that_ask_each_other_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nuncio.toml");
    let circle = DELEGATING.replace(
        "id = \"worker\"\nkind = \"echo\"",
        "id = \"worker\"\nkind = \"model\"\nmodel = \"boss\"\nmembers = [\"support\"]",
    );
    std::fs::write(&file, circle).unwrap();
    let mut command = nuncio(folder.path());
    command.args(["config", "check"]).arg(&file);
    let said = run(command, "");
    assert_ne!(said.code, 0);
    assert!(said.err.contains("members[0]"), "{}", said.err);
}

/// A program that speaks MCP, in a few lines of its own: enough to be found and called.
const MCP: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method = asked["method"]
    if method == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "own", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
        result = {"tools": [{"name": name, "inputSchema": schema} for name in ("shout", "whisper")]}
    else:
        word = asked["params"]["arguments"]["word"]
        result = {"content": [{"type": "text", "text": word.upper()}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

#[test]
fn a_model_calls_a_tool_of_an_mcp_server() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("own.py");
    std::fs::write(&program, MCP).unwrap();
    let server = Server::configured(&format!(
        "[mcp.own]\ncommand = [\"python3\", {program:?}]\nallow = [\"shout\"]\nprefix = \"own_\"\n\
         [models.m]\nprovider = \"fake\"\nrules = [\n\
         {{ when = {{ has_tool = \"own_shout\" }}, reply = [{{ tool = {{ name = \"own_shout\", arguments = {{ word = \"{{text}}\" }} }} }}] }},\n\
         {{ when = {{ after_tool = \"own_shout\" }}, reply = [{{ text = \"{{result}}\" }}] }} ]\n\
         [[agents]]\nid = \"support\"\nkind = \"model\"\nmodel = \"m\"\nmcp = [\"own\"]\n"
    ));
    let done = send(&server, "hello", None);
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "HELLO", "{done}");
}

/// An operation of a service as a tool, from its document to the request that it gets.
#[test]
fn a_model_calls_an_operation_of_a_service() {
    let service = crate::fake::Fake::bare(|_| {
        (
            "200 OK",
            "application/json",
            json!({"state": "shipped"}).to_string(),
        )
    });
    let folder = tempfile::tempdir().unwrap();
    let document = folder.path().join("orders.json");
    let operation = json!({"operationId": "get_order", "summary": "Tells how an order stands.",
        "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
        "responses": {"200": {"description": "The order."}}});
    let described = json!({"openapi": "3.0.3", "info": {"title": "Orders", "version": "1"},
        "paths": {"/orders/{id}": {"get": operation}}});
    std::fs::write(&document, described.to_string()).unwrap();
    let server = Server::configured(&format!(
        r#"
        [outbound]
        allow_networks = ["127.0.0.0/8"]
        [openapi.orders]
        document = "{}"
        base_url = "{}/v1"
        bearer = "ours"
        [models.scripted]
        provider = "fake"
        [[models.scripted.rules]]
        when = {{ after_tool = "get_order" }}
        reply = [{{ text = "It is {{result}}" }}]
        [[models.scripted.rules]]
        otherwise = true
        reply = [{{ tool = {{ name = "get_order", arguments = {{ id = "{{text}}" }} }} }}]
        [[agents]]
        id = "support"
        kind = "model"
        model = "scripted"
        openapi = ["orders"]
        "#,
        document.display(),
        service.url
    ));
    let task = send(&server, "ORD/1", None);
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    assert!(task["artifacts"].to_string().contains("shipped"), "{task}");
    let asked = &service.requests()[0];
    assert!(
        asked.line.starts_with("GET /v1/orders/ORD%2F1 "),
        "{}",
        asked.line
    );
    assert_eq!(asked.header("authorization"), Some("Bearer ours"));
}

/// The example plays: a question, an agent as a tool, and another model where a caller may choose it.
#[test]
fn the_example_of_a_model_agent_is_played() {
    let server = Server::example("model-agent");
    let post = |body: Value| {
        let headers = [("Content-Type", "application/json"), ("A2A-Version", "1.0")];
        exchange(
            &server.url,
            "POST",
            "/message:send",
            &headers,
            &body.to_string(),
        )
    };
    let message = |id: &str, text: &str| json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]});
    let asked = post(json!({"message": message("m1", "a table")})).json()["task"].clone();
    assert_eq!(
        asked["status"]["message"]["parts"][0]["text"], "For how many?",
        "{asked}"
    );
    let mut answer = message("m2", "four");
    answer["taskId"] = asked["id"].clone();
    let done = post(json!({ "message": answer })).json()["task"].clone();
    let said = |task: &Value| -> String {
        let parts = task["artifacts"][0]["parts"].as_array().unwrap();
        parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect()
    };
    assert_eq!(said(&done), "The kitchen says: a table for four", "{done}");

    let other = json!({"memorylake": {"overrides": {"model": "cheap"}}});
    let full = post(json!({"message": message("m3", "a table"), "metadata": other})).json();
    assert_eq!(said(&full["task"]), "Sorry, we are full.", "{full}");
    let brief = json!({"memorylake": {"overrides": {"systemPrompt": "Be brief."}}});
    let refused = post(json!({"message": message("m4", "a table"), "metadata": brief}));
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(
        refused.body.contains("overrides.systemPromptOverride"),
        "{refused:?}"
    );
}
