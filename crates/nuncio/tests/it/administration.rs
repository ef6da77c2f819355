//! `nuncio agents` against a running server.

use std::fs;

use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::fake::Fake;
use crate::support::{Said, Server, exchange, nuncio, run};

const ADMIN: &str = "admin-secret";
const PLAIN: &str = "plain-secret";

fn server() -> Server {
    let hash = |key: &str| -> String {
        let digest = Sha256::digest(key);
        digest.iter().map(|b| format!("{b:02x}")).collect()
    };
    let (admin, plain) = (hash(ADMIN), hash(PLAIN));
    Server::configured(&format!(
        "[[auth.keys]]\nsha256 = \"{admin}\"\ncaller = \"root\"\nadmin = true\n\
         [[auth.keys]]\nsha256 = \"{plain}\"\ncaller = \"alice\"\n\
         [[agents]]\nid = \"fixed\"\nkind = \"echo\"\n"
    ))
}

fn with_key(server: &Server, key: &str, arguments: &[&str], input: &str) -> Said {
    let mut command = nuncio(server.folder.path());
    command.arg("agents").args(arguments);
    command.env("A2ACLI_SERVER", &server.url);
    if !key.is_empty() {
        command.env("A2ACLI_API_KEY", key);
    }
    run(command, input)
}

fn agents(server: &Server, arguments: &[&str]) -> Said {
    with_key(server, ADMIN, arguments, "")
}

fn write(server: &Server, name: &str, text: &str) {
    fs::write(server.folder.path().join(name), text).unwrap();
}

#[test]
fn agents_are_added_listed_changed_and_removed() {
    let server = server();
    write(
        &server,
        "desk.toml",
        "[[agents]]\nid = \"desk\"\nkind = \"echo\"\ndescription = \"New here.\"\n\
         [[agents.skills]]\nid = \"s\"\nname = \"S\"\ndescription = \"d\"\ntags = [\"t\"]\n",
    );
    let added = agents(&server, &["add", "desk.toml"]).exits(0);
    assert_eq!(added.out, "Agent: desk\nState: added\n");
    let listed = agents(&server, &["list"]).exits(0);
    let url = &server.url;
    assert_eq!(
        listed.out,
        format!(
            "Agent: desk\nName: Echo\nDescription: New here.\nKind: echo\nSource: api\nURL: {url}/agents/desk\n\
             Card URL: {url}/agents/desk/.well-known/agent-card.json\n\
             Agent: fixed\nName: Echo\nDescription: Gives back the text it gets; a text beginning with \
             `hold` takes 30 seconds.\nKind: echo\nSource: configuration\nURL: {url}/agents/fixed\n\
             Card URL: {url}/agents/fixed/.well-known/agent-card.json\n"
        )
    );
    // What `get` shows can be added again.
    let got = agents(&server, &["get", "desk"]).exits(0);
    let shown = got.out.split("Configuration:\n").nth(1).unwrap();
    let shown = shown.lines().map(str::trim_start).collect::<Vec<_>>();
    let changed = shown.join("\n").replace("New here.", "Changed.");
    let put = with_key(&server, ADMIN, &["add", "-", "--replace"], &changed).exits(0);
    assert_eq!(put.out, "Agent: desk\nState: replaced\n");
    let card = "/agents/desk/.well-known/agent-card.json";
    let card = exchange(&server.url, "GET", card, &[], "").json();
    assert_eq!(card["description"], "Changed.");
    assert_eq!(card["skills"][0]["id"], "s");

    let gone = agents(&server, &["remove", "desk"]).exits(0);
    assert_eq!(gone.out, "Agent: desk\nState: removed\n");
    let listed = agents(&server, &["list", "-o", "json"]).exits(0).json();
    assert_eq!(listed["agents"].as_array().unwrap().len(), 1);
}

#[test]
fn bare_tables_and_json_are_agents_too() {
    let server = server();
    write(&server, "bare.toml", "id = \"bare\"\nkind = \"echo\"\n");
    write(&server, "j.json", r#"{"id": "j", "kind": "echo"}"#);
    agents(&server, &["add", "bare.toml"]).exits(0);
    let added = agents(&server, &["add", "j.json", "--replace", "-o", "json"]).exits(0);
    assert_eq!(added.json()["id"], "j");
    let got = agents(&server, &["get", "j", "-o", "json"]).exits(0).json();
    assert_eq!((&got["id"], &got["source"]), (&json!("j"), &json!("api")));
    let gone = agents(&server, &["remove", "j", "-o", "json"]).exits(0);
    assert_eq!(gone.json(), json!({}));
}

#[test]
fn what_is_refused_says_why_and_what_to_do() {
    let server = server();
    write(&server, "desk.toml", "id = \"desk\"\nkind = \"echo\"\n");
    write(&server, "fixed.toml", "id = \"fixed\"\nkind = \"echo\"\n");
    write(&server, "odd.json", r#"{"id": "odd", "kind": "dance"}"#);
    write(
        &server,
        "two.toml",
        "[[agents]]\nid = \"a\"\n[[agents]]\nid = \"b\"\n",
    );
    agents(&server, &["add", "desk.toml"]).exits(0);
    for (arguments, exit, code, words) in [
        (
            &["add", "desk.toml"][..],
            1,
            "InvalidRequestError",
            "--replace",
        ),
        (
            &["add", "fixed.toml", "--replace"],
            1,
            "InvalidRequestError",
            "configuration",
        ),
        (
            &["remove", "fixed"],
            1,
            "InvalidRequestError",
            "configuration",
        ),
        (
            &["get", "nobody"],
            1,
            "InvalidRequestError",
            "no agent nobody",
        ),
        (&["add", "odd.json"], 1, "InvalidParamsError", "kind: "),
        (&["add", "two.toml"], 2, "A2ACLI_ERR_USAGE", "2 agents"),
        (
            &["add", "nowhere.toml"],
            2,
            "A2ACLI_ERR_USAGE",
            "nowhere.toml",
        ),
        (&["get", "../x"], 2, "A2ACLI_ERR_USAGE", "no id"),
        (
            &["list", "--server", "h:1"],
            2,
            "A2ACLI_ERR_USAGE",
            "--server",
        ),
        (
            &["list", "--server", "http://127.0.0.1:1"],
            3,
            "A2ACLI_ERR_UNREACHABLE",
            "--server",
        ),
    ] {
        let said = agents(&server, arguments).exits(exit);
        assert!(
            said.err.contains(code) && said.err.contains(words),
            "{arguments:?}: {said:?}"
        );
        let json = agents(&server, &[arguments, &["-o", "json"]].concat()).exits(exit);
        assert_eq!(json.json()["error"]["code"], code, "{arguments:?}");
    }
    let conflict = agents(&server, &["add", "desk.toml", "-o", "json"]).exits(1);
    assert_eq!(conflict.json()["error"]["a2aCode"], 409);
}

#[test]
fn only_administrators_get_in() {
    let server = server();
    for (key, code, word) in [
        ("", "A2ACLI_ERR_CREDENTIALS_MISSING", "A2ACLI_API_KEY"),
        ("wrong", "A2ACLI_ERR_AUTH_FAILED", "[[auth.keys]]"),
        (PLAIN, "A2ACLI_ERR_AUTH_FAILED", "admin = true"),
    ] {
        let said = with_key(&server, key, &["list"], "").exits(4);
        assert!(
            said.err.contains(code) && said.err.contains(word),
            "{key}: {said:?}"
        );
    }
    let open = Server::echo();
    let said = with_key(&open, "", &["list"], "").exits(4);
    assert!(said.err.contains("CREDENTIALS_MISSING"), "{said:?}");
    let said = agents(&server, &["list", "--debug"]).exits(0);
    assert!(said.err.contains("/admin/v1/agents"), "{said:?}");
    assert!(!said.err.contains(ADMIN), "{said:?}");
}

#[test]
fn a_stranger_is_told_from_a_server() {
    for (status, kind, body) in [
        ("200 OK", "text/html", "<html>"),
        ("404 Not Found", "text/html", "<html>"),
        (
            "404 Not Found",
            "application/json",
            "{\"detail\": \"Not Found\"}",
        ),
        ("302 Found", "text/plain", ""),
    ] {
        let fake = Fake::bare(move |_| (status, kind, body.to_owned()));
        let folder = tempfile::tempdir().unwrap();
        let mut command = nuncio(folder.path());
        command.args(["agents", "list", "--server", &fake.url, "--api-key", "k"]);
        let said = run(command, "").exits(1);
        assert!(said.err.contains("InvalidAgentResponseError"), "{said:?}");
        let asked = &fake.requests()[0];
        assert!(asked.line.starts_with("GET /admin/v1/agents "), "{asked:?}");
        assert_eq!(asked.header("authorization"), Some("Bearer k"));
    }
}
