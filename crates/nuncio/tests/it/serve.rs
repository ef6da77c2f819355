//! `nuncio serve`, `config` and `db` as an operator meets them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{self, Server, exchange, nuncio, run};

/// The status of a plain GET.
fn status(url: &str, path: &str) -> Option<u16> {
    let address = url.strip_prefix("http://")?;
    let mut stream = TcpStream::connect(address).ok()?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}

/// `server.requests_per_second` and `server.request_burst`, by the address of those without a key.
#[test]
fn a_rate_is_as_the_configuration_says() {
    let config = "[server]\nrequests_per_second = 1\nrequest_burst = 3\n";
    let server = Server::configured(config);
    let ask = || exchange(&server.url, "GET", "/tasks", &[], "");
    let mut statuses: Vec<_> = (0..20).map(|_| ask().status).collect();
    assert_eq!(statuses[..3], [200; 3], "{statuses:?}");
    statuses.dedup();
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[test]
fn a_server_says_where_it_is_and_how_to_try_it() {
    let server = Server::echo();
    let url = &server.url;
    assert_eq!(
        server.lines,
        [
            format!("agent echo {url}/agents/echo"),
            format!("card {url}/.well-known/agent-card.json"),
            format!("try nuncio send --agent-card {url} \"hello\""),
            format!("ready {url}"),
        ]
    );
    for path in [
        "/livez",
        "/readyz",
        "/.well-known/agent-card.json",
        "/agents/echo/.well-known/agent-card.json",
    ] {
        assert_eq!(status(url, path), Some(200), "{path}");
    }
    let card = server.run(&["card", "get"], &[]).exits(0);
    assert_eq!(
        (card.field("Name"), card.field("Streaming")),
        ("Echo".to_owned(), "yes".to_owned())
    );
}

#[test]
fn a_signal_ends_an_idle_server_at_once_and_well() {
    for name in ["TERM", "INT"] {
        let mut server = Server::echo();
        server.send(&["x"]).exits(0);
        let began = Instant::now();
        server.signal(name);
        assert_eq!(
            server.ends_within(Duration::from_secs(5)),
            0,
            "{}",
            server.log()
        );
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "{:?}",
            began.elapsed()
        );
    }
}

#[test]
fn a_second_signal_does_not_wait_for_running_tasks() {
    let mut server = Server::echo();
    server.send(&["hold", "--async"]).exits(0);
    server.signal("TERM");
    let began = Instant::now();
    while status(&server.url, "/readyz") == Some(200) {
        assert!(began.elapsed() < Duration::from_secs(5), "{}", server.log());
    }
    let began = Instant::now();
    server.signal("TERM");
    assert_eq!(server.ends_within(Duration::from_secs(5)), 130);
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[test]
fn a_port_in_use_is_told() {
    let server = Server::echo();
    let address = server.url.trim_start_matches("http://");
    let folder = tempfile::tempdir().unwrap();
    let mut command = nuncio(folder.path());
    command.args(["serve", "--listen", address]);
    let said = run(command, "").exits(1);
    assert!(
        said.err.contains(&format!("failed to listen on {address}")),
        "{said:?}"
    );
    assert!(
        said.err.contains("hint: another program has the port"),
        "{said:?}"
    );
}

#[test]
fn one_data_folder_is_for_one_server() {
    let server = Server::echo();
    let mut command = nuncio(server.folder.path());
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    let said = run(command, "").exits(1);
    assert!(said.err.contains("in use by another process"), "{said:?}");
    assert!(
        said.err.contains("hint: ") && said.err.contains("--data"),
        "{said:?}"
    );
    server.send(&["still there"]).exits(0);
}

#[test]
fn a_drain_lets_running_tasks_end_and_takes_no_new_ones() {
    let rules = "[[agents]]\nid = \"s\"\nkind = \"script\"\nstreaming = false\n\
                 [[agents.rules]]\notherwise = true\n\
                 steps = [{ status = \"x\" }, { wait_ms = 1000 }, { artifact = { text = \"done\" } }]\n";
    let mut server = Server::configured(rules);
    let task = server.send(&["x", "--async"]).exits(0).field("Task ID");
    server.signal("TERM");
    let refused = loop {
        let body = r#"{"message":{"messageId":"y","role":"ROLE_USER","parts":[{"text":"y"}]},
                      "configuration":{"returnImmediately":true}}"#;
        let kind = [("Content-Type", "application/json")];
        let said = support::exchange(&server.url, "POST", "/message:send", &kind, body);
        if said.status != 200 {
            break said;
        }
    };
    assert!(refused.body.contains("shutting down"), "{refused:?}");
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("1"))
    );
    assert_eq!(
        server
            .run(&["task", "get"], &[&task])
            .exits(0)
            .field("State"),
        "WORKING"
    );
    assert_eq!(server.ends_within(Duration::from_secs(10)), 0);
    let server = Server::start_in(server.crash(), &["--config", "nuncio.toml"]);
    let task = server.run(&["task", "get"], &[&task]).exits(0);
    assert_eq!(task.field("State"), "COMPLETED");
}

/// BR-146.
#[test]
fn the_network_is_refused_without_keys() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = nuncio(folder.path());
    command.args(["serve", "--listen", "0.0.0.0:0"]);
    let said = run(command, "").exits(2);
    assert!(
        said.err
            .contains("--listen: server.listen: 0.0.0.0:0 is open to the network"),
        "{said:?}"
    );
    assert!(said.err.contains("--insecure"), "{said:?}");
    assert!(
        !folder.path().join("nuncio-data").exists(),
        "nothing has been made"
    );
    let mut command = nuncio(folder.path());
    command.args([
        "serve",
        "--listen",
        "0.0.0.0:0",
        "--insecure",
        "--store",
        "memory:",
    ]);
    command.env("NUNCIO__SERVER__DRAIN_DELAY_SECONDS", "0");
    let mut child = support::Process::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let ready = support::line_from(child.stdout.take().unwrap(), "ready ");
    let url = ready.trim_start_matches("ready ");
    assert_eq!(status(url, "/livez"), Some(200));
    support::signal(child.id(), "TERM");
    assert_eq!(support::wait(&mut child, Duration::from_secs(5)), 0);
    let err = support::rest(child.stderr.take().unwrap());
    assert!(
        err.contains("warning: 0.0.0.0:0 takes calls from anybody"),
        "{err}"
    );
    assert!(err.contains("public_url"), "{err}");
}

#[test]
fn several_agents_have_an_address_each() {
    let server = Server::configured(
        "[server]\ndefault_agent = \"b\"\n[store]\nurl = \"memory:\"\n\
         [[agents]]\nid = \"a\"\nkind = \"echo\"\n\
         [[agents]]\nid = \"b\"\nkind = \"script\"\n[[agents.rules]]\notherwise = true\n\
         steps = [{ artifact = { text = \"I am b\" } }]\n",
    );
    assert!(server.send(&["x"]).exits(0).out.contains("I am b"));
    let mut command = nuncio(server.folder.path());
    command.args(["send", "-a", &format!("{}/agents/a", server.url), "I am a"]);
    assert!(run(command, "").exits(0).out.contains("  I am a\n"));
}

#[test]
fn logs_can_be_json() {
    let server = Server::start(&[
        "--store",
        "memory:",
        "--log-format",
        "json",
        "--log-level",
        "debug",
    ]);
    server.send(&["x"]).exits(0);
    let log = server.log();
    assert!(!log.is_empty());
    for line in log.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(value["level"].is_string(), "{line}");
    }
    assert!(
        !server.folder.path().join("nuncio-data").exists(),
        "memory leaves no trace"
    );
}

#[test]
fn a_configuration_is_checked_dumped_and_described() {
    let folder = tempfile::tempdir().unwrap();
    let said = |arguments: &[&str]| {
        let mut command = nuncio(folder.path());
        command.args(arguments).env("NUNCIO__SERVER__WORKERS", "3");
        run(command, "")
    };
    std::fs::write(
        folder.path().join("n.toml"),
        "[server]\nlisten = \"127.0.0.1:81\"\n",
    )
    .unwrap();
    assert_eq!(
        said(&["config", "check", "n.toml"]).exits(0).out,
        "n.toml: good; agents: echo\n"
    );
    let dump = said(&["config", "dump", "--config", "n.toml"]).exits(0).out;
    assert!(
        dump.contains("listen = \"127.0.0.1:81\"  # n.toml:2\n"),
        "{dump}"
    );
    assert!(
        dump.contains("workers = 3  # environment variable NUNCIO__SERVER__WORKERS\n"),
        "{dump}"
    );
    let schema = said(&["config", "schema"]).exits(0);
    serde_json::from_str::<serde_json::Value>(&schema.out).unwrap();
    std::fs::write(
        folder.path().join("n.toml"),
        "[server]\nlisten = 1\nlistn = 2\n",
    )
    .unwrap();
    let refused = said(&["config", "check", "n.toml"]).exits(2);
    assert!(refused.err.contains("n.toml:"), "{refused:?}");
    assert!(refused.err.contains("hint: "), "{refused:?}");
}
