//! `--debug`: the wire on stderr, without secrets.

use serde_json::json;

use crate::fake::{Fake, done, events, finished};
use crate::support::{Said, nuncio, run};

fn send(fake: &Fake, more: &[&str]) -> Said {
    let folder = tempfile::tempdir().unwrap();
    let mut command = nuncio(folder.path());
    command.args(["send", "-a", &fake.url, "hello"]).args(more);
    run(command, "")
}

#[test]
fn the_raw_messages_of_the_wire_show() {
    for (binding, target) in [("JSONRPC", "POST"), ("HTTP+JSON", "/message:stream")] {
        let listed =
            |url: &str| json!([{"url": url, "protocolBinding": binding, "protocolVersion": "1.0"}]);
        let agent = Fake::answering(move |request| {
            if request.line.contains("message:stream") {
                let event = format!("data: {}\n\n", done());
                return ("200 OK", "text/event-stream", event);
            }
            finished(request)
        });
        let fake = Fake::with_card(json!({"supportedInterfaces": listed(&agent.url)}), finished);
        let said = send(&fake, &["--debug", "-o", "json"]).exits(0);
        said.json();
        for piece in [
            "the card of \"Fake\" is at",
            &format!("talking {binding} 1.0 to"),
            "> GET ",
            &format!("> POST {}", agent.url),
            target,
            "> a2a-version: 1.0",
            "\"text\":\"hello\"",
            "< 200 OK after ",
            "< content-type: text/event-stream",
            "< data: {",
        ] {
            assert!(said.err.contains(piece), "{piece}: {}", said.err);
        }
        assert!(said.err.lines().all(|line| line.starts_with("debug: ")));
        assert_eq!(send(&fake, &["-o", "json"]).exits(0).err, "");
    }
}

/// AUTH_004: no other flag brings a secret back, and an agent that repeats it is not printed.
#[test]
fn secrets_stay_out_whoever_says_them() {
    let task = json!({"task": {"id": "t", "contextId": "c",
        "status": {"state": "TASK_STATE_COMPLETED"},
        "metadata": {"you": "s3cret", "said": "t0ken", "and": "v4lue", "so": "p4ss"}}});
    let fake = Fake::answering(move |_| {
        let answer = events(std::slice::from_ref(&task));
        ("200 OK", "text/event-stream", answer)
    });
    let more = [
        "--debug",
        "--verbose",
        "--api-key",
        "s3cret",
        "--bearer",
        "t0ken",
        "--svc-param",
        "x-secret: v4lue",
        "--svc-param",
        "x-auth: Basic p4ss",
    ];
    let said = send(&fake, &more).exits(0);
    let last = fake.requests().pop().unwrap();
    assert_eq!(last.header("x-secret"), Some("v4lue"));
    for secret in ["s3cret", "t0ken", "v4lue", "p4ss"] {
        assert!(!said.err.contains(secret), "{secret}: {}", said.err);
    }
    for header in ["authorization", "x-api-key", "x-secret", "x-auth"] {
        let line = format!("> {header}: (redacted)");
        assert!(said.err.contains(&line), "{line}: {}", said.err);
    }
}

#[test]
fn retries_and_lost_streams_are_told() {
    let working =
        json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}});
    let fake = Fake::answering(move |request| {
        let item = if request.body.contains("SendStreamingMessage") {
            working.clone()
        } else {
            done()
        };
        ("200 OK", "text/event-stream", events(&[item]))
    });
    let said = send(&fake, &["--debug", "--stream"]).exits(0);
    assert!(said.err.contains("the stream is lost"), "{said:?}");
    let nobody = "127.0.0.1:1";
    let dead = json!([{"url": format!("http://{nobody}/"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]);
    let fake = Fake::with_card(json!({"supportedInterfaces": dead}), finished);
    let said = send(&fake, &["--debug"]).exits(3);
    assert!(said.err.contains("trying again in 200 ms"), "{said:?}");
}
