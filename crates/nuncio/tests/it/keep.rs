//! What must outlive the process.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{Server, line_from, nuncio, rest, run, wait};

#[test]
fn tasks_survive_a_crash_and_paused_ones_go_on() {
    let config = std::fs::read_to_string(crate::support::example("damaged-order")).unwrap();
    let server = Server::configured(&config);
    let waiting = server.send(&["Order ORD-1042 arrived damaged"]).exits(0);
    let (task, context) = (waiting.field("Task ID"), waiting.field("Context ID"));
    let folder = server.crash();
    let path = folder.path().join("nuncio.toml");
    let server = Server::start_in(folder, &["--config".as_ref(), path.as_os_str()]);
    let again = server.run(&["task", "get"], &[&task]).exits(0);
    assert_eq!(again.field("State"), "INPUT_REQUIRED");
    let done = server
        .send(&["--context-id", &context, "--text", "see", "--text", "this"])
        .exits(0);
    assert_eq!(
        (done.field("Task ID"), done.field("State")),
        (task, "COMPLETED".to_owned())
    );
}

/// An echo run may be repeated, so a crash does not fail it.
#[test]
fn a_run_that_a_crash_cut_off_is_taken_up_again() {
    let server = Server::echo();
    let task = server.send(&["hold", "--async"]).exits(0).field("Task ID");
    let server = Server::start_in(server.crash(), &[] as &[&str]);
    let state = server
        .run(&["task", "get"], &[&task])
        .exits(0)
        .field("State");
    assert!(["SUBMITTED", "WORKING"].contains(&&*state), "{state}");
    assert_eq!(
        server
            .run(&["task", "cancel"], &[&task])
            .exits(0)
            .field("State"),
        "CANCELED"
    );
}

/// The client goes on by itself when the server comes back.
#[test]
fn a_waiting_client_survives_a_crash_of_the_server() {
    let config = "[[agents]]\nid = \"s\"\nkind = \"script\"\nresumable = true\n\
                  [[agents.rules]]\notherwise = true\n\
                  steps = [{ wait_ms = 1000 }, { artifact = { text = \"done\" } }]\n";
    let server = Server::configured(config);
    let address = server.url.trim_start_matches("http://").to_owned();
    let mut command = server.command(&["send"], &["x"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut client = command.spawn().unwrap();
    line_from(client.stderr.as_mut().unwrap(), "task: ");
    let folder = server.crash();
    let path = folder.path().join("nuncio.toml");
    let _server = Server::start_at(folder, &address, &["--config".as_ref(), path.as_os_str()]);
    assert_eq!(wait(&mut client, Duration::from_secs(20)), 0);
    let out = rest(client.stdout.take().unwrap());
    assert!(
        out.contains("State: COMPLETED") && out.contains("  done\n"),
        "{out}"
    );
}

/// A restart in good order closes the streams itself; who follows goes on all the same.
#[test]
fn a_stream_survives_a_restart_of_the_server() {
    let config = "[server]\ndrain_seconds = 1\n\
                  [[agents]]\nid = \"s\"\nkind = \"script\"\nresumable = true\n\
                  [[agents.rules]]\notherwise = true\n\
                  steps = [{ wait_ms = 3000 }, { artifact = { text = \"done\" } }]\n";
    for (binding, subscribe) in [("JSONRPC", false), ("HTTP+JSON", true)] {
        let mut server = Server::configured(config);
        let address = server.url.trim_start_matches("http://").to_owned();
        let more = ["--stream", "-o", "json", "--transport", binding];
        let mut command = if subscribe {
            let task = server.send(&["x", "--async"]).exits(0).field("Task ID");
            let mut command = server.command(&["task", "subscribe"], &more);
            command.arg(task);
            command
        } else {
            server.command(&["send", "x"], &more)
        };
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut client = command.spawn().unwrap();
        let mut out = client.stdout.take().unwrap();
        line_from(&mut out, "{\"task\"");
        server.signal("TERM");
        assert_eq!(server.ends_within(Duration::from_secs(10)), 0);
        std::thread::sleep(Duration::from_secs(1));
        let folder = server.crash();
        let path = folder.path().join("nuncio.toml");
        let _server = Server::start_at(folder, &address, &["--config".as_ref(), path.as_os_str()]);
        let code = wait(&mut client, Duration::from_secs(30));
        let (out, err) = (rest(out), rest(client.stderr.take().unwrap()));
        assert_eq!(code, 0, "{binding} {subscribe}: {out} {err}");
        let last = out.lines().last().unwrap();
        assert!(last.contains("TASK_STATE_COMPLETED"), "{out}");
        assert_eq!(out.matches("\"done\"").count(), 1, "{out}");
    }
}

/// A server that stays away is exit code 3, with the command to go on.
#[test]
fn a_stream_whose_server_stays_away_says_how_to_go_on() {
    let mut server = Server::configured(
        "[server]\ndrain_seconds = 0\n[[agents]]\nid = \"e\"\nkind = \"echo\"\n",
    );
    let mut command = server.command(&["send"], &["hold", "--stream", "-o", "json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut client = command.spawn().unwrap();
    let mut out = client.stdout.take().unwrap();
    line_from(&mut out, "{\"task\"");
    server.signal("TERM");
    server.ends_within(Duration::from_secs(10));
    let began = Instant::now();
    assert_eq!(wait(&mut client, Duration::from_secs(60)), 3);
    assert!(began.elapsed() >= Duration::from_secs(10));
    let all = rest(out);
    let last: serde_json::Value = serde_json::from_str(all.lines().last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "A2ACLI_ERR_UNREACHABLE");
    let hint = last["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("nuncio task get"), "{hint}");
}

#[cfg(unix)]
#[test]
fn secrets_are_for_their_owner_and_stay_the_same() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = Server::echo();
    for _ in 0..3 {
        server.send(&["x"]).exits(0);
    }
    let page = server
        .run(&["task", "list"], &["--page-size", "1", "-o", "json"])
        .exits(0)
        .json();
    let token = page["nextPageToken"].as_str().unwrap().to_owned();
    let key = server.folder.path().join("nuncio-data/token.key");
    assert_eq!(
        std::fs::metadata(&key).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let server = Server::start_in(server.crash(), &[] as &[&str]);
    server
        .run(
            &["task", "list"],
            &["--page-size", "1", "--page-token", &token],
        )
        .exits(0);
}

#[test]
fn a_database_is_checked() {
    let server = Server::echo();
    server.send(&["x"]).exits(0);
    let folder = server.crash();
    let check = |path: &str| {
        let mut command = nuncio(folder.path());
        command.args(["db", "check", path]);
        run(command, "")
    };
    for path in ["nuncio-data", "nuncio-data/nuncio.db"] {
        let said = check(path).exits(0);
        assert_eq!(
            (said.field("Tasks"), said.field("State")),
            ("1".to_owned(), "intact".to_owned())
        );
    }
    assert!(
        check("nowhere")
            .exits(1)
            .err
            .contains("failed to check nowhere")
    );
    std::fs::write(
        folder.path().join("nuncio-data/other.db"),
        "this is no database",
    )
    .unwrap();
    check("nuncio-data/other.db").exits(1);
}
