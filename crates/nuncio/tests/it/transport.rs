//! Finding the card, and choosing one of its interfaces.

use serde_json::{Value, json};

use crate::fake::{Fake, Request, done, finished};
use crate::support::{Said, Server, nuncio, run};

fn said(words: &[&str]) -> Said {
    let folder = tempfile::tempdir().unwrap();
    let mut command = nuncio(folder.path());
    command.args(words);
    run(command, "")
}

/// Understands both bindings.
fn both(request: &Request) -> (&'static str, &'static str, String) {
    if request.line.contains("/message:stream") {
        return (
            "200 OK",
            "text/event-stream",
            format!("data: {}\n\n", done()),
        );
    }
    finished(request)
}

/// The request lines of an agent with these interfaces that was sent a message.
fn asked(interfaces: impl Fn(&str) -> Value, more: &[&str]) -> Vec<Request> {
    let agent = Fake::answering(both);
    let card = json!({"supportedInterfaces": interfaces(&agent.url)});
    let fake = Fake::with_card(card, both);
    said(&[&["send", "-a", &fake.url, "x"], more].concat()).exits(0);
    agent.requests()
}

fn interface(url: &str, binding: &str) -> Value {
    json!({"url": url, "protocolBinding": binding, "protocolVersion": "1.0"})
}

#[test]
fn a_card_is_found_by_host_address_or_file() {
    let server = Server::echo();
    let raw = server.run(&["card", "get"], &["-o", "json"]).exits(0).out;
    std::fs::write(server.folder.path().join("card.json"), &raw).unwrap();
    let host = server.url.trim_start_matches("http://").to_owned();
    let path = server.folder.path().join("card.json").display().to_string();
    for reference in [
        host,
        server.url.clone(),
        format!("{}/.well-known/agent-card.json", server.url),
        "card.json".to_owned(),
        format!("file://{path}"),
        path,
    ] {
        let ask = |words: &[&str]| {
            let mut command = nuncio(server.folder.path());
            command.args(words).args(["-a", &reference]);
            run(command, "").exits(0)
        };
        let card = ask(&["card", "get"]);
        assert_eq!(card.field("Name"), "Echo", "{reference}");
        assert!(card.out.contains("Interface: JSONRPC 1.0 http"), "{card:?}");
        assert_eq!(
            ask(&["send", "x"]).field("State"),
            "COMPLETED",
            "{reference}"
        );
    }
}

#[test]
fn the_first_interface_that_is_spoken_here_is_used() {
    for (order, target) in [
        (["x-crow", "HTTP+JSON", "JSONRPC"], "/message:stream"),
        (["x-pigeon", "JSONRPC", "HTTP+JSON"], "POST / "),
    ] {
        let listed = |url: &str| order.iter().map(|b| interface(url, b)).collect();
        let requests = asked(listed, &[]);
        assert!(requests[0].line.contains(target), "{order:?}: {requests:?}");
    }
}

/// VER-09, CARD-03: each version over each binding, with the server of this program.
#[test]
fn both_versions_are_spoken_over_every_binding() {
    let server = Server::echo();
    for version in ["1.0", "0.3"] {
        for binding in ["JSONRPC", "HTTP+JSON", "GRPC"] {
            let more = ["--transport", binding, "--a2a-version", version];
            let sent = server.run(&["send", "hello"], &more).exits(0);
            assert_eq!(sent.field("State"), "COMPLETED", "{more:?}");
            let task = sent.field("Task ID").to_owned();
            let got = server.run(&["task", "get", &task], &more).exits(0);
            assert!(got.out.contains("hello"), "{more:?}: {got:?}");
            let noted = server.run(&["task", "get", &task], &[&more[..], &["--debug"]].concat());
            let words = format!("talking {binding} {version} to ");
            assert!(noted.err.contains(&words), "{noted:?}");
        }
    }
}

/// MAP-02: cards of either version, or of both, are shown with all their interfaces.
#[test]
fn cards_of_all_kinds_are_shown() {
    let older = json!({"name": "Old", "description": "d", "version": "1", "protocolVersion": "0.3.0",
        "url": "https://h.example/a2a", "preferredTransport": "JSONRPC", "capabilities": {},
        "additionalInterfaces": [{"url": "https://h.example/v1", "transport": "HTTP+JSON"},
            {"url": "h.example:443", "transport": "GRPC"}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "x-key"}},
        "skills": [{"id": "s", "name": "S", "description": "d", "tags": ["t"]}]});
    let mut union = older.clone();
    union["supportedInterfaces"] = json!([interface("https://h.example/a2a", "JSONRPC")]);
    let interfaces_of_old = [
        "Interface: JSONRPC 0.3 https://h.example/a2a",
        "Interface: HTTP+JSON 0.3 https://h.example/v1",
        "Interface: GRPC 0.3 h.example:443",
    ];
    for (card, newer) in [
        (older, None),
        (union, Some("Interface: JSONRPC 1.0 https://h.example/a2a")),
    ] {
        let text = card.to_string();
        let fake = Fake::bare(move |_| ("200 OK", "application/json", text.clone()));
        let shown = said(&["card", "get", "-a", &fake.url, "--validate"]).exits(0);
        for line in interfaces_of_old.iter().copied().chain(newer) {
            assert!(shown.out.contains(line), "{line}: {shown:?}");
        }
        assert!(shown.out.contains("API key in header x-key"), "{shown:?}");
    }
}

#[test]
fn transports_are_preferred_in_the_order_given() {
    let card = ["JSONRPC", "HTTP+JSON"];
    let listed = |url: &str| card.iter().map(|b| interface(url, b)).collect();
    for (more, target) in [
        (&["--transport", "HTTP+JSON"][..], "/message:stream"),
        (
            &[
                "--transport",
                "GRPC",
                "--transport",
                "HTTP+JSON",
                "--transport",
                "JSONRPC",
            ],
            "/message:stream",
        ),
        (
            &["--transport", "JSONRPC", "--transport", "HTTP+JSON"],
            "POST / ",
        ),
        (&["--transport", "GRPC"], "POST / "),
    ] {
        let requests = asked(listed, more);
        assert!(requests[0].line.contains(target), "{more:?}: {requests:?}");
    }
}

#[test]
fn the_interfaces_tenant_goes_with_every_request() {
    let with = |url: &str| {
        let mut interface = interface(url, "JSONRPC");
        interface["tenant"] = json!("acme/eu");
        json!([interface])
    };
    let without = |url: &str| json!([interface(url, "JSONRPC")]);
    let tenants = |requests: Vec<Request>| -> Vec<Value> {
        let body = |request: &Request| serde_json::from_str::<Value>(&request.body).unwrap();
        requests
            .iter()
            .map(|request| body(request)["params"]["tenant"].clone())
            .collect()
    };
    let sent = tenants(asked(with, &[]));
    assert!(
        sent.len() > 1 && sent.iter().all(|t| *t == "acme/eu"),
        "{sent:?}"
    );
    let sent = tenants(asked(without, &[]));
    assert!(
        sent.len() > 1 && sent.iter().all(Value::is_null),
        "{sent:?}"
    );
}

#[test]
fn every_request_names_the_version() {
    for version in [&[][..], &["--a2a-version", "1.0"]] {
        let requests = asked(|url| json!([interface(url, "HTTP+JSON")]), version);
        assert!(requests.len() > 1);
        for request in requests {
            assert_eq!(request.header("a2a-version"), Some("1.0"), "{request:?}");
        }
    }
}

#[test]
fn what_the_card_does_not_offer_is_not_asked_for() {
    let fake = Fake::answering(|_| unreachable!());
    let refused = said(&["card", "get", "--extended", "-a", &fake.url, "-o", "json"]).exits(1);
    assert_eq!(refused.json()["error"]["code"], "UnsupportedOperationError");
    let silent = json!({"capabilities": {"streaming": false}});
    let fake = Fake::with_card(silent, |request| {
        assert!(!request.body.contains("Stream"), "{request:?}");
        let answer = json!({"jsonrpc": "2.0", "id": "1", "result": done()});
        ("200 OK", "application/json", answer.to_string())
    });
    let lines = said(&["send", "x", "--stream", "-a", &fake.url, "-o", "json"]).exits(0);
    assert_eq!(lines.json_lines().len(), 1, "{lines:?}");
}
