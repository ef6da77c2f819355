//! What goes wrong before, on the way and after: names, hints, exit codes.

use serde_json::json;

use crate::fake::{Answer, Fake};
use crate::support::{Said, nuncio, run};

fn said(arguments: &[&str]) -> Said {
    let folder = tempfile::tempdir().unwrap();
    let mut command = nuncio(folder.path());
    command.args(arguments);
    run(command, "")
}

/// Nothing listens there.
fn closed_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[test]
fn nobody_there_is_exit_code_3() {
    let address = closed_port();
    let text = said(&["send", "-a", &address, "x"]).exits(3);
    assert!(
        text.err
            .starts_with("error: failed to get the agent card: "),
        "{text:?}"
    );
    assert!(text.err.contains("\nhint: ") && text.err.contains("\ncode: A2ACLI_ERR_UNREACHABLE"));
    assert_eq!(text.out, "");
    let json = said(&["card", "get", "-a", &address, "-o", "json"]).exits(3);
    assert_eq!(json.json()["error"]["code"], "A2ACLI_ERR_UNREACHABLE");
    assert_eq!(json.err, "");
}

#[test]
fn an_agent_behind_a_good_card_may_be_gone() {
    let address = format!("http://{}", closed_port());
    let interfaces =
        json!([{"url": address, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]);
    let fake = Fake::with_card(
        json!({"supportedInterfaces": interfaces}),
        |_| unreachable!(),
    );
    let said = said(&["send", "-a", &fake.url, "x", "-o", "json"]).exits(3);
    assert_eq!(said.json()["error"]["code"], "A2ACLI_ERR_UNREACHABLE");
}

#[test]
fn no_card_and_no_good_card_are_told_apart() {
    let nothing = Fake::bare(|_| ("404 Not Found", "text/plain", "no".to_owned()));
    let code = |said: Said| said.json()["error"]["code"].as_str().unwrap().to_owned();
    let missing = said(&["card", "get", "-a", &nothing.url, "-o", "json"]).exits(3);
    assert_eq!(code(missing), "A2ACLI_ERR_CARD_NOT_FOUND");
    let nonsense = Fake::bare(|_| ("200 OK", "application/json", "{}".to_owned()));
    let invalid = said(&["card", "get", "-a", &nonsense.url, "-o", "json"]).exits(1);
    assert_eq!(code(invalid), "A2ACLI_ERR_CARD_INVALID");
    let guarded = Fake::bare(|_| ("401 Unauthorized", "text/plain", "no".to_owned()));
    let refused = said(&["card", "get", "-a", &guarded.url, "-o", "json"]).exits(4);
    assert_eq!(code(refused), "A2ACLI_ERR_AUTH_FAILED");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("card.json");
    let absent = said(&[
        "card",
        "get",
        "-a",
        &path.display().to_string(),
        "-o",
        "json",
    ])
    .exits(3);
    assert_eq!(code(absent), "A2ACLI_ERR_CARD_NOT_FOUND");
    std::fs::write(&path, "[]").unwrap();
    let file = format!("file://{}", path.display());
    let broken = said(&["card", "get", "-a", &file, "-o", "json"]).exits(1);
    assert_eq!(code(broken), "A2ACLI_ERR_CARD_INVALID");
}

/// BR-037: a refused stream is an error with the server's code, never an empty success.
#[test]
fn a_refused_stream_is_an_error() {
    let error =
        json!({"jsonrpc": "2.0", "id": "1", "error": {"code": -32005, "message": "no pictures"}});
    let plain = error.to_string();
    let in_sse = format!("data: {error}\n\n");
    let unfinished = error.to_string();
    let cases: Vec<(&str, Answer, &str)> = vec![
        (
            "plain JSON",
            ("200 OK", "application/json", plain),
            "ContentTypeNotSupportedError",
        ),
        (
            "an event",
            ("200 OK", "text/event-stream", in_sse),
            "ContentTypeNotSupportedError",
        ),
        (
            "no blank line",
            ("200 OK", "text/event-stream", unfinished),
            "ContentTypeNotSupportedError",
        ),
        (
            "no event at all",
            ("200 OK", "text/event-stream", String::new()),
            "InvalidAgentResponseError",
        ),
        (
            "HTML",
            ("200 OK", "text/html", "<html>".to_owned()),
            "InvalidAgentResponseError",
        ),
    ];
    for (name, answer, code) in cases {
        let fake = Fake::answering(move |_| answer.clone());
        for more in [&[][..], &["--stream"]] {
            let arguments = ["send", "-a", &fake.url, "x", "-o", "json"];
            let said = said(&[&arguments[..], more].concat());
            assert_ne!(said.code, 0, "{name} {more:?}: {said:?}");
            let last = said.json_lines().pop().unwrap();
            let got = last["error"]["code"].as_str().unwrap_or_default();
            assert_eq!(got, code, "{name} {more:?}: {said:?}");
        }
    }
}

#[test]
fn an_old_agent_is_told_from_a_missing_one() {
    let interfaces = json!([{"url": "http://h.example/", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}]);
    let fake = Fake::with_card(
        json!({"supportedInterfaces": interfaces}),
        |_| unreachable!(),
    );
    for more in [&[][..], &["--a2a-version", "1.0"]] {
        let said = said(&[&["send", "-a", &fake.url, "x"], more].concat()).exits(1);
        for word in [
            "VersionNotSupportedError",
            "JSONRPC 0.3",
            "--a2a-version 0.3",
        ] {
            assert!(said.err.contains(word), "{word}: {said:?}");
        }
    }
}

#[test]
fn mistakes_in_the_arguments_are_exit_code_2_in_either_form() {
    for (arguments, word) in [
        (&["send", "x"][..], "--agent-card"),
        (&["send", "-a", "h"], "nothing to send"),
        (
            &["send", "-a", "h", "x", "--timeout", "soon"],
            "not a duration",
        ),
        (&["send", "-a", "h", "x", "--transport", "pigeon"], "pigeon"),
        (
            &["send", "-a", "h", "x", "--a2a-version", "0.2"],
            "--a2a-version",
        ),
        (
            &[
                "send",
                "-a",
                "h",
                "x",
                "--media-type",
                "a/b",
                "--media-type",
                "c/d",
            ],
            "--media-type",
        ),
        (&["send", "-a", "h", "--file", "/nowhere"], "/nowhere"),
        (&["send", "-a", "h", "x", "--async", "--wait"], "--wait"),
        (
            &["send", "-a", "h", "x", "--svc-param", "Host:x"],
            "host is not for callers",
        ),
        (
            &["send", "-a", "h", "x", "--svc-param", "a2a-version:9"],
            "--a2a-version",
        ),
        (&["task", "get", "-a", "h"], "required"),
        (&["sned"], "send"),
        (&["send", "--strem"], "--stream"),
    ] {
        let text = said(arguments).exits(2);
        assert!(text.err.contains(word), "{arguments:?}: {text:?}");
        assert_eq!(text.out, "");
        let json = said(&[arguments, &["-o", "json"]].concat()).exits(2);
        let error = json.json()["error"].clone();
        assert_eq!(error["code"], "A2ACLI_ERR_USAGE", "{arguments:?}");
        assert!(error.to_string().contains(word), "{arguments:?}: {error}");
    }
}

#[test]
fn a_card_is_checked_when_asked() {
    let good = Fake::answering(|_| unreachable!());
    let checked = said(&["card", "get", "-a", &good.url, "--validate", "-o", "json"]).exits(0);
    assert_eq!(checked.json()["name"], "Fake");
    let bad = Fake::with_card(
        json!({"skills": [{"id": "s", "name": "s"}]}),
        |_| unreachable!(),
    );
    let lenient = said(&["card", "get", "-a", &bad.url]).exits(0);
    assert!(
        lenient
            .err
            .contains("warning: skills[0] has no description"),
        "{lenient:?}"
    );
    let strict = said(&["card", "get", "-a", &bad.url, "--validate"]).exits(1);
    assert!(
        strict.err.contains("skills[0].tags") && strict.err.contains("A2ACLI_ERR_CARD_INVALID")
    );
}

#[test]
fn a_card_is_printed_as_it_came() {
    let fake = Fake::with_card(json!({"x-extra": {"a": [1, null]}}), |_| unreachable!());
    let said = said(&["card", "get", "-a", &fake.url, "-o", "json"]).exits(0);
    assert_eq!(said.json()["x-extra"], json!({"a": [1, null]}));
}
