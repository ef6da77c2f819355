//! Agents of several kinds, from a configuration to an answer over the wire.

use std::time::Duration;

use serde_json::{Value, json};

use crate::fake::{Fake, Request};
use crate::support::{Exchange, Server, example, exchange, until};

fn message(text: &str) -> Value {
    json!({"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}]})
}

/// Sends a text over HTTP+JSON.
fn send(server: &Server, agent: &str, text: &str) -> Value {
    let body = json!({"message": message(text)}).to_string();
    let path = format!("/agents/{agent}/message:send");
    let sent = post(server, &path, &[], &body);
    assert_eq!(sent.status, 200, "{sent:?}");
    sent.json()["task"].clone()
}

fn post(server: &Server, path: &str, more: &[(&str, &str)], body: &str) -> Exchange {
    let mut headers = vec![("Content-Type", "application/json"), ("A2A-Version", "1.0")];
    headers.extend(more);
    exchange(&server.url, "POST", path, &headers, body)
}

#[test]
fn a_program_answers_as_configured() {
    let program = format!(
        "{}/../../examples/process-agent/agent.py",
        env!("CARGO_MANIFEST_DIR")
    );
    let server = Server::configured(&format!(
        "[[agents]]\nid = \"reverse\"\nkind = \"process\"\ncommand = [\"python3\", \"{program}\"]\n\
         [[agents]]\nid = \"kept\"\nkind = \"process\"\nmode = \"persistent\"\ncommand = [\"python3\", \"{program}\"]\n"
    ));
    for agent in ["reverse", "kept"] {
        let task = send(&server, agent, "abc de");
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
        let texts = task["artifacts"][0]["parts"].to_string();
        assert!(texts.contains("cba") && texts.contains("ed"), "{task}");
    }
}

/// A program that is kept does not outlive the server, also when it does not listen.
#[test]
fn no_program_outlives_its_server() {
    let program = "import json, os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    task = json.loads(line)['task']
    for event in {'type': 'text', 'delta': str(os.getpid())}, {'type': 'done'}:
        print(json.dumps(event | {'task': task}), flush=True)
while True: signal.pause()
";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kept.py");
    std::fs::write(&path, program).unwrap();
    let mut server = Server::configured(&format!(
        "[[agents]]\nid = \"kept\"\nkind = \"process\"\nmode = \"persistent\"\n\
         command = [\"python3\", \"{}\"]\n",
        path.display()
    ));
    let task = send(&server, "kept", "x");
    let process = std::path::Path::new("/proc").join(texts(&task).concat());
    assert!(process.exists(), "{task}");
    server.signal("TERM");
    assert_eq!(server.ends_within(Duration::from_secs(60)), 0);
    until(|| !process.exists());
}

/// The answer of a service in all tests here.
fn done(_: &Request) -> crate::fake::Answer {
    let body = json!({"type": "text", "delta": "ok"}).to_string();
    ("200 OK", "application/json", body)
}

fn service_agent(url: &str, more: &str) -> String {
    format!(
        "[outbound]\nallow_networks = [\"127.0.0.1\"]\n\
         [[agents]]\nid = \"s\"\nkind = \"http\"\nurl = \"{url}/ask\"\n{more}\n"
    )
}

/// Whatever a caller sends, the service sees what is configured and allowed, on every route.
#[test]
fn br_164_br_150_a_service_sees_allowed_headers_only() {
    let service = Fake::bare(done);
    let server = Server::configured(&service_agent(
        &service.url,
        "headers = { X-Fixed = \"f\" }\nbearer = \"ours\"\nforward_headers = [\"X-Team\", \"X-Twice\", \"X-Fixed\"]",
    ));
    let theirs = [
        ("X-Team", "blue"),
        ("X-Twice", "1"),
        ("X-Twice", "2"),
        ("X-Fixed", "theirs"),
        ("X-Other", "secret"),
        ("Cookie", "a=secret"),
        ("X-Forwarded-For", "10.9.8.7"),
        ("X-Nuncio-Caller", "root"),
        ("Idempotency-Key", "theirs"),
    ];
    let rpc = |method: &str, id: &str| {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message(id)}})
            .to_string()
    };
    let rest = |id: &str| json!({"message": message(id)}).to_string();
    // The key makes a send happen once, so each route has its own.
    let routes = [
        ("/agents/s/message:send", rest("a")),
        ("/agents/s/message:stream", rest("b")),
        ("/agents/s", rpc("SendMessage", "c")),
        ("/agents/s", rpc("SendStreamingMessage", "d")),
    ];
    for (index, (path, body)) in routes.iter().enumerate() {
        let key = format!("theirs-{index}");
        let theirs = theirs.map(|(name, value)| match name {
            "Idempotency-Key" => (name, key.as_str()),
            _ => (name, value),
        });
        let answer = post(&server, path, &theirs, body);
        assert!(answer.body.contains("ok"), "{path}: {answer:?}");
        let asked = service.requests().pop().unwrap();
        let all = |name: &str| -> Vec<&str> {
            let named = asked.headers.iter();
            let named = named.filter(|(known, _)| known.eq_ignore_ascii_case(name));
            named.map(|(_, value)| value.as_str()).collect()
        };
        assert_eq!(all("authorization"), ["Bearer ours"], "{path}");
        assert_eq!(all("x-fixed"), ["f"], "{path}");
        assert_eq!(all("x-team"), ["blue"], "{path}");
        assert_eq!(all("x-twice"), ["1, 2"], "{path}");
        for name in ["x-other", "cookie", "x-forwarded-for", "x-nuncio-caller"] {
            assert_eq!(all(name), [""; 0], "{path}: {name}");
        }
        assert_eq!(all("idempotency-key").len(), 1, "{path}");
        assert!(!all("idempotency-key")[0].contains("theirs"), "{path}");
    }
    assert_eq!(service.requests().len(), routes.len());
}

/// The text of all artifacts of a task.
fn texts(task: &Value) -> Vec<String> {
    let artifacts = task["artifacts"].as_array().into_iter().flatten();
    let text = |artifact: &Value| artifact["parts"][0]["text"].as_str().unwrap().to_owned();
    artifacts.map(text).collect()
}

#[test]
fn flows_are_played_as_configured() {
    let folder = tempfile::tempdir().unwrap();
    let config = example("flows");
    let server = Server::start_in(folder, &["--config", &config]);
    for (agent, given) in [
        (
            "letter",
            vec!["[kind] Dear reader, x", "[true] Dear reader, x"],
        ),
        ("polish", vec!["[kind] Dear reader, x"]),
        (
            "review",
            vec!["[true] [kind] Dear reader, [kind] Dear reader, x"],
        ),
        (
            "desk",
            vec!["[kind] Dear reader, x", "[true] Dear reader, x"],
        ),
    ] {
        assert_eq!(texts(&send(&server, agent, "x")), given, "{agent}");
    }
    let task = send(&server, "desk", "my bill");
    assert_eq!(
        task["status"]["state"], "TASK_STATE_INPUT_REQUIRED",
        "{task}"
    );
    assert_eq!(task["status"]["message"]["parts"][0]["text"], "Which bill?");
    // The member that asked gets the answer, after a crash too.
    let server = Server::start_in(server.crash(), &["--config", &config]);
    let mut answer = message("7");
    answer["taskId"] = task["id"].clone();
    let body = json!({"message": answer}).to_string();
    let answered = post(&server, "/agents/desk/message:send", &[], &body).json();
    assert_eq!(texts(&answered["task"]), ["Bill 7 is paid."], "{answered}");
}
