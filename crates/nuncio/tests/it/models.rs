//! Agents that a model speaks for, from a configuration to an answer over the wire.

use serde_json::{Value, json};

use crate::support::{Server, exchange};

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
