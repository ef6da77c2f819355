//! Layers of a configuration, around agents of a real server.

use serde_json::{Value, json};

use crate::support::{Server, exchange, until};

const CONFIG: &str = r#"
[layers.pii]
kind = "redact"
patterns = ["[0-9]{3}-[0-9]{2}-[0-9]{4}"]

[layers.no-secrets]
kind = "refuse"
patterns = ["(?i)internal only"]
message = "this must not be asked here"

[layers.fair]
kind = "quota"
runs_per_minute = 3
tokens_per_day = 1000000

[layers.trail]
kind = "audit"
file = "audit.jsonl"

[layers.log]
kind = "audit"

[[agents]]
id = "plain"
kind = "echo"
layers = ["trail", "pii", "no-secrets", "fair"]

[[agents]]
id = "support"
kind = "model"
model = "m"
members = ["plain"]
layers = ["trail", "log", "pii"]

[models.m]
provider = "fake"

[[models.m.rules]]
when = { after_tool = "plain" }
reply = [{ text = "It says {result}" }]

[[models.m.rules]]
otherwise = true
reply = [{ tool = { name = "plain", arguments = { message = "{text}" } } }]
"#;

fn ask(server: &Server, agent: &str, text: &str) -> Value {
    let id = format!("{agent}-{}", lines(server).len());
    let message = json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]});
    let headers = [("Content-Type", "application/json"), ("A2A-Version", "1.0")];
    let path = format!("/agents/{agent}/message:send");
    let body = json!({ "message": message }).to_string();
    exchange(&server.url, "POST", &path, &headers, &body).json()["task"].clone()
}

fn lines(server: &Server) -> Vec<Value> {
    let path = server.folder.path().join("nuncio-data/audit.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn text(task: &Value) -> &str {
    task["artifacts"][0]["parts"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap_or_default()
}

#[test]
fn layers_of_a_configuration_stand_around_agents() {
    let server = Server::configured(CONFIG);
    assert_eq!(
        text(&ask(&server, "plain", "I am 123-45-6789")),
        "I am [removed]"
    );
    let refused = ask(&server, "plain", "what is Internal Only?");
    assert_eq!(state(&refused), "TASK_STATE_REJECTED");
    let why = &refused["status"]["message"]["parts"][0]["text"];
    assert_eq!(why, "this must not be asked here");

    let answer = ask(&server, "support", "call 123-45-6789");
    assert_eq!(text(&answer), "It says call [removed]");
    let told = |line: &Value| format!("{} {} {}", line["agent"], line["what"], line["ended"]);
    let trail: Vec<_> = lines(&server).iter().map(told).collect();
    let trail: Vec<_> = trail.iter().map(|line| line.replace('"', "")).collect();
    assert_eq!(
        trail,
        [
            "plain run done",
            "plain run rejected",
            "support model done",
            "plain run done",
            "support tool done",
            "support model done",
            "support run done",
        ],
        "one layer may stand around several agents"
    );
    until(|| server.log().contains("nuncio::audit"));
    assert!(!server.log().contains("123-45"), "{}", server.log());

    // Two have come so far to where runs are counted, one of them from the other agent.
    assert_eq!(
        state(&ask(&server, "plain", "three")),
        "TASK_STATE_COMPLETED"
    );
    let refused = ask(&server, "plain", "four");
    assert_eq!(state(&refused), "TASK_STATE_REJECTED");
    let why = refused["status"]["message"]["parts"][0]["text"].to_string();
    assert!(why.contains("try again in"), "{why}");
}
