//! Where the client's settings come from, and that none of them is a session.

use crate::support::{Said, Server, nuncio, run};

fn show(
    folder: &std::path::Path,
    at: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Said {
    let mut command = nuncio(folder);
    command
        .current_dir(folder.join(at))
        .args(["config", "show"])
        .args(arguments);
    command.envs(environment.iter().copied());
    run(command, "")
}

#[test]
fn each_setting_has_one_source_in_a_fixed_order() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::create_dir_all(root.join(".config/a2a-cli")).unwrap();
    std::fs::create_dir_all(root.join("work/deep")).unwrap();
    let global = "A2ACLI_AGENT_CARD=global\nA2ACLI_TIMEOUT=1s\nA2ACLI_OUTPUT=text\nA2ACLI_POLL_INTERVAL=9s\n";
    std::fs::write(root.join(".config/a2a-cli/.env"), global).unwrap();
    let local = "# ours\nA2ACLI_AGENT_CARD=local\nA2ACLI_TIMEOUT=2s\nOTHER=1\nA2ACLI_STREAM=true\n";
    std::fs::write(root.join("work/.env"), local).unwrap();
    std::fs::write(root.join("other.env"), "A2ACLI_TIMEOUT='4s'\n").unwrap();
    let environment = [("A2ACLI_TIMEOUT", "3s"), ("A2ACLI_BEARER", "s3cret")];

    let said = show(root, "work/deep", &["--agent-card", "flag"], &environment).exits(0);
    assert_eq!(said.field("agent-card"), "flag [flag]");
    assert_eq!(said.field("timeout"), "3s [environment]");
    assert_eq!(said.field("bearer"), "(redacted) [environment]");
    assert!(
        said.field("poll-interval").starts_with("9s [file "),
        "{said:?}"
    );
    assert_eq!(said.field("insecure"), "false [default]");
    assert!(
        !said.out.contains("s3cret") && !said.out.contains("stream"),
        "{said:?}"
    );

    let local = show(root, "work/deep", &[], &[]).exits(0);
    assert!(
        local.field("agent-card").starts_with("local [file "),
        "{local:?}"
    );
    let named = show(root, "work", &["--config", "../other.env"], &[]).exits(0);
    assert!(named.field("timeout").starts_with("4s [file "), "{named:?}");
    assert!(
        named.field("agent-card").starts_with("global [file "),
        "{named:?}"
    );

    let json = show(
        root,
        "work",
        &["-o", "json", "--svc-param", "x-key: s3cret"],
        &environment,
    )
    .exits(0);
    assert_eq!(json.json()["settings"]["timeout"]["value"], "3s");
    assert_eq!(
        json.json()["settings"]["svc-param"]["value"],
        "x-key:(redacted)"
    );
    assert!(!json.out.contains("s3cret"));
}

#[test]
fn a_file_that_is_wrong_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("bad.env"),
        "A2ACLI_TIMEOUT=1s\nnonsense\n",
    )
    .unwrap();
    let said = show(folder.path(), ".", &["--config", "bad.env"], &[]).exits(2);
    assert!(
        said.err.contains("bad.env") && said.err.contains("line 2"),
        "{said:?}"
    );
    let said = show(folder.path(), ".", &["--config", "nowhere.env"], &[]).exits(2);
    assert!(said.err.contains("nowhere.env"), "{said:?}");
    // Somebody else's `.env` is none of our business.
    std::fs::write(folder.path().join(".env"), "this is = not ours {\n").unwrap();
    show(folder.path(), ".", &[], &[]).exits(0);
}

#[test]
fn the_environment_sets_what_flags_would() {
    let server = Server::example("interop");
    let environment = [
        ("A2ACLI_AGENT_CARD", &*server.url),
        ("A2ACLI_OUTPUT", "json"),
    ];
    let mut command = nuncio(server.folder.path());
    command.args(["send", "hello"]).envs(environment);
    assert_eq!(
        run(command, "").exits(0).json()["task"]["artifacts"][0]["parts"][0]["text"],
        "hello"
    );
    let mut command = nuncio(server.folder.path());
    command
        .args(["send", "ask", "-o", "text"])
        .envs(environment);
    let said = run(command, "").exits(0);
    let resume = said.field("Resume");
    assert!(
        !resume.contains("--agent-card"),
        "the environment names it already: {resume}"
    );
    // A failure in the arguments is JSON as well, once the environment says so.
    let mut command = nuncio(server.folder.path());
    command.args(["send"]).envs(environment);
    assert_eq!(
        run(command, "").exits(2).json()["error"]["code"],
        "A2ACLI_ERR_USAGE"
    );
    for (name, value, flag) in [
        ("A2ACLI_ASYNC", "true", "--wait"),
        ("A2ACLI_TIMEOUT", "1ms", "--timeout=10s"),
    ] {
        let mut command = nuncio(server.folder.path());
        command
            .args(["send", "slow", flag])
            .envs(environment)
            .env(name, value);
        let task = run(command, "").exits(0).json();
        assert_eq!(
            task["task"]["status"]["state"], "TASK_STATE_COMPLETED",
            "{name}"
        );
    }
    let mut command = nuncio(server.folder.path());
    command
        .args(["send", "x"])
        .envs(environment)
        .env("A2ACLI_VERBOSE", "maybe");
    assert!(run(command, "").exits(2).out.contains("A2ACLI_VERBOSE"));
}

/// Nothing is left behind, so nothing can be resumed by accident.
#[test]
fn nothing_is_remembered() {
    let server = Server::example("interop");
    let before = files(server.folder.path());
    server.send(&["ask"]).exits(0);
    assert_eq!(files(server.folder.path()), before);
}

fn files(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
