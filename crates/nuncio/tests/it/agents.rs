//! Agents that come and go while the server runs.

use serde_json::{Value, json};

use crate::support::{Exchange, Server, exchange};

const ADMIN: &str = "admin-secret";
const PLAIN: &str = "plain-secret";

fn sha256(text: &str) -> String {
    use sha2::{Digest as _, Sha256};
    Sha256::digest(text)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

fn config() -> String {
    let (admin, plain) = (sha256(ADMIN), sha256(PLAIN));
    format!(
        "[[auth.keys]]\nsha256 = \"{admin}\"\ncaller = \"root\"\nadmin = true\n\
         [[auth.keys]]\nsha256 = \"{plain}\"\ncaller = \"alice\"\n\
         [[agents]]\nid = \"fixed\"\nkind = \"echo\"\n"
    )
}

fn ask(server: &Server, key: &str, method: &str, path: &str, body: &Value) -> Exchange {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let headers = [("X-API-Key", key), ("Content-Type", "application/json")];
    exchange(&server.url, method, path, &headers, &body)
}

fn send(server: &Server, agent: &str) -> u16 {
    let message = json!({"message": {
        "messageId": agent, "role": "ROLE_USER", "parts": [{"text": "hello"}]
    }});
    let path = format!("/agents/{agent}/message:send");
    ask(server, PLAIN, "POST", &path, &message).status
}

#[test]
fn agents_come_and_go_and_outlive_a_restart() {
    let server = Server::configured(&config());
    assert_eq!(send(&server, "fresh"), 404);
    let agent = json!({"id": "fresh", "kind": "echo", "description": "New here."});
    let made = ask(&server, ADMIN, "POST", "/admin/v1/agents", &agent);
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(send(&server, "fresh"), 200);
    let again = ask(&server, ADMIN, "POST", "/admin/v1/agents", &agent);
    assert_eq!(again.status, 409, "{again:?}");

    let changed = json!({"kind": "echo", "description": "Changed."});
    let put = ask(&server, ADMIN, "PUT", "/admin/v1/agents/fresh", &changed);
    assert_eq!(put.status, 200, "{put:?}");
    let card = exchange(
        &server.url,
        "GET",
        "/agents/fresh/.well-known/agent-card.json",
        &[],
        "",
    );
    assert_eq!(card.json()["description"], "Changed.");
    let listed = ask(&server, ADMIN, "GET", "/admin/v1/agents", &Value::Null).json();
    let listed: Vec<_> = listed["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| (agent["id"].clone(), agent["source"].clone()))
        .collect();
    assert_eq!(
        listed,
        [
            (json!("fixed"), json!("configuration")),
            (json!("fresh"), json!("api"))
        ]
    );

    let folder = server.crash();
    let path = folder.path().join("nuncio.toml");
    let server = Server::start_in(folder, &["--config".as_ref(), path.as_os_str()]);
    let got = ask(
        &server,
        ADMIN,
        "GET",
        "/admin/v1/agents/fresh",
        &Value::Null,
    )
    .json();
    assert_eq!(got["config"]["description"], "Changed.");
    assert_eq!(send(&server, "fresh"), 200);

    let gone = ask(
        &server,
        ADMIN,
        "DELETE",
        "/admin/v1/agents/fresh",
        &Value::Null,
    );
    assert_eq!(gone.status, 200, "{gone:?}");
    assert_eq!(send(&server, "fresh"), 404);
    let twice = ask(
        &server,
        ADMIN,
        "DELETE",
        "/admin/v1/agents/fresh",
        &Value::Null,
    );
    assert_eq!(twice.status, 404);
    let folder = server.crash();
    let path = folder.path().join("nuncio.toml");
    let server = Server::start_in(folder, &["--config".as_ref(), path.as_os_str()]);
    assert_eq!(send(&server, "fresh"), 404, "removed for good");
}

#[test]
fn only_administrators_change_agents() {
    let server = Server::configured(&config());
    let agent = json!({"id": "fresh", "kind": "echo"});
    for (key, status) in [(PLAIN, 403), ("wrong", 401)] {
        for (method, path) in [
            ("GET", "/admin/v1/agents"),
            ("POST", "/admin/v1/agents"),
            ("PUT", "/admin/v1/agents/fresh"),
            ("DELETE", "/admin/v1/agents/fixed"),
            ("GET", "/admin/v1/nothing"),
        ] {
            let reply = ask(&server, key, method, path, &agent);
            assert_eq!(reply.status, status, "{key} {method} {path}");
        }
    }
    assert_eq!(send(&server, "fresh"), 404);
    let open = Server::echo();
    let reply = ask(&open, "", "GET", "/admin/v1/agents", &Value::Null);
    assert!(reply.status == 401 || reply.status == 403, "{reply:?}");
    let anonymous = exchange(&open.url, "GET", "/admin/v1/agents", &[], "");
    assert_eq!(anonymous.status, 403, "not even where calls are free");
}

#[test]
fn mistakes_name_their_field_and_change_nothing() {
    let server = Server::configured(&config());
    for (method, path, body, status, field) in [
        (
            "POST",
            "/admin/v1/agents",
            json!({"kind": "echo"}),
            400,
            "id",
        ),
        (
            "POST",
            "/admin/v1/agents",
            json!({"id": "a b", "kind": "echo"}),
            400,
            "id",
        ),
        (
            "POST",
            "/admin/v1/agents",
            json!({"id": "tasks", "kind": "echo"}),
            400,
            "id",
        ),
        (
            "POST",
            "/admin/v1/agents",
            json!({"id": "a", "kind": "dance"}),
            400,
            "kind",
        ),
        (
            "POST",
            "/admin/v1/agents",
            json!({"id": "a", "kind": "echo", "colour": 1}),
            400,
            "colour",
        ),
        (
            "POST",
            "/admin/v1/agents",
            json!({"id": "a", "kind": "echo", "dialects": []}),
            400,
            "dialects",
        ),
        (
            "POST",
            "/admin/v1/agents",
            json!({"id": "a", "kind": "script", "rules": [{"steps": []}]}),
            400,
            "rules[0]",
        ),
        ("POST", "/admin/v1/agents", json!([]), 400, "object"),
        (
            "PUT",
            "/admin/v1/agents/a",
            json!({"id": "b", "kind": "echo"}),
            400,
            "id",
        ),
        (
            "PUT",
            "/admin/v1/agents/fixed",
            json!({"kind": "echo"}),
            409,
            "fixed",
        ),
        (
            "DELETE",
            "/admin/v1/agents/fixed",
            Value::Null,
            409,
            "fixed",
        ),
        (
            "DELETE",
            "/admin/v1/agents/..%2Ftoken",
            Value::Null,
            404,
            "no agent",
        ),
        ("PATCH", "/admin/v1/agents/fixed", Value::Null, 405, "GET"),
    ] {
        let reply = ask(&server, ADMIN, method, path, &body);
        assert_eq!(reply.status, status, "{method} {path} {body}: {reply:?}");
        assert!(reply.body.contains(field), "{field}: {reply:?}");
    }
    let listed = ask(&server, ADMIN, "GET", "/admin/v1/agents", &Value::Null).json();
    assert_eq!(listed["agents"].as_array().unwrap().len(), 1);
}
