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
    let mut config = service_agent(
        &service.url,
        "headers = { X-Fixed = \"f\" }\nbearer = \"ours\"\nforward_headers = [\"X-Team\", \"X-Twice\", \"X-Fixed\"]",
    );
    // Through a flow comes what the flow lets through and the member too.
    config += "[[agents]]\nid = \"f\"\nkind = \"sequence\"\nmembers = [\"s\"]\n\
               forward_headers = [\"X-Team\", \"X-Other\"]\n";
    let server = Server::configured(&config);
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
        ("/agents/f/message:send", rest("e")),
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
        let through_flow = path.starts_with("/agents/f");
        let twice: &[&str] = if through_flow { &[] } else { &["1, 2"] };
        assert_eq!(all("x-twice"), twice, "{path}");
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

/// A stream of chat completions, word by word.
fn completion(words: &[&str]) -> crate::fake::Answer {
    let chunk = |delta: Value, finish: Value, more: Value| {
        let mut chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        for (name, value) in more.as_object().into_iter().flatten() {
            chunk[name] = value.clone();
        }
        format!("data: {chunk}\n\n")
    };
    let words = words
        .iter()
        .map(|word| chunk(json!({"content": word}), Value::Null, Value::Null));
    let usage = json!({"usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}});
    let body: String = words
        .chain([
            chunk(json!({}), json!("stop"), usage),
            "data: [DONE]\n\n".to_owned(),
        ])
        .collect();
    ("200 OK", "text/event-stream", body)
}

fn openai_agent(url: &str, more: &str) -> String {
    format!(
        "[outbound]\nallow_networks = [\"127.0.0.1\"]\n\
         [[agents]]\nid = \"o\"\nkind = \"openai\"\nurl = \"{url}/v1\"\nmodel = \"small\"\n\
         bearer = \"s3cret\"\ninstructions = \"You are {{agent.name}}.\"\n{more}\n"
    )
}

fn asked(service: &Fake) -> Vec<Value> {
    let requests = service.requests().into_iter();
    requests
        .map(|request| serde_json::from_str(&request.body).unwrap())
        .collect()
}

#[test]
fn an_endpoint_of_openai_is_an_agent() {
    let service = Fake::bare(|_| completion(&["Hel", "lo."]));
    let server = Server::configured(&openai_agent(
        &service.url,
        "params = { temperature = 0.5 }\nname = \"Olga\"",
    ));
    let body = json!({"message": message("hi")}).to_string();
    let streamed = post(&server, "/agents/o/message:stream", &[], &body).body;
    let events: Vec<Value> = streamed
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect();
    let pieces: Vec<_> = events
        .iter()
        .filter_map(|event| {
            let update = event.get("artifactUpdate")?;
            let text = update["artifact"]["parts"][0]["text"].as_str()?;
            Some((text, update["append"].as_bool().unwrap_or(false)))
        })
        .filter(|(text, _)| !text.is_empty())
        .collect();
    assert_eq!(pieces, [("Hel", false), ("lo.", true)], "{streamed}");
    assert!(streamed.contains("TASK_STATE_COMPLETED"), "{streamed}");
    let usage = events.iter().find_map(|event| {
        let metadata = &event["artifactUpdate"]["artifact"]["metadata"]["usage"];
        metadata["outputTokens"].as_u64()
    });
    assert_eq!(usage, Some(2), "{streamed}");

    // The second task of the conversation, with a picture.
    let context = events.iter().find_map(|event| {
        let context = &event["task"]["contextId"];
        context.as_str().map(str::to_owned)
    });
    let mut second = message("and this?");
    second["contextId"] = json!(context.unwrap());
    let picture = json!({"raw": "iVBORw0KGgo=", "mediaType": "image/png", "filename": "p.png"});
    second["parts"].as_array_mut().unwrap().push(picture);
    let body = json!({"message": second}).to_string();
    let answered = post(&server, "/agents/o/message:send", &[], &body);
    assert_eq!(answered.status, 200, "{answered:?}");
    let request = service.requests().pop().unwrap();
    assert!(
        request.line.starts_with("POST /v1/chat/completions "),
        "{request:?}"
    );
    assert_eq!(request.header("authorization"), Some("Bearer s3cret"));
    let last = asked(&service).pop().unwrap();
    assert_eq!(
        (&last["model"], &last["temperature"]),
        (&json!("small"), &json!(0.5))
    );
    let roles: Vec<_> = last["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"], "{last}");
    let said = last["messages"].to_string();
    assert!(said.contains("Hello.") && said.contains("hi"), "{said}");
    assert!(
        said.contains("image_url") && said.contains("iVBORw0KGgo="),
        "{said}"
    );
}

#[test]
fn errors_of_an_endpoint_fail_the_task_without_its_address_and_key() {
    for (status, tries) in [
        ("401 Unauthorized", 1),
        ("400 Bad Request", 1),
        ("503 Service Unavailable", 2),
    ] {
        let service = Fake::bare(move |_| {
            let error = json!({"error": {"message": "no s3cret here", "type": "x"}});
            (status, "application/json", error.to_string())
        });
        let server = Server::configured(&openai_agent(&service.url, "retries = 1"));
        let task = send(&server, "o", "hi");
        assert_eq!(task["status"]["state"], "TASK_STATE_FAILED", "{task}");
        let told = task["status"]["message"].to_string();
        assert!(
            !told.contains("s3cret") && !told.contains("127.0.0.1"),
            "{told}"
        );
        assert_eq!(asked(&service).len(), tries, "{status}");
    }
}
