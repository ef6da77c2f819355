//! Agents that come and go while the server runs.

use nuncio::{AgentInfo, Host, agent_fn};
use serde_json::{Value, json};

use crate::fake::Fake;
use crate::support::{Exchange, Server, exchange, until};

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
    ask_at(&server.url, key, method, path, body)
}

fn ask_at(url: &str, key: &str, method: &str, path: &str, body: &Value) -> Exchange {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let headers = [("X-API-Key", key), ("Content-Type", "application/json")];
    exchange(url, method, path, &headers, &body)
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
            json!({"id": "a", "kind": "echo", "bindings": ["GRPC", "GRPC"]}),
            400,
            "bindings",
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

/// A flow is added with its members, and holds them while it is there.
#[test]
fn flows_come_and_go_with_their_members() {
    let model = "[models.m]\nprovider = \"fake\"\nrules = [{ otherwise = true, reply = [] }]\n";
    let server = Server::configured(&format!("{}{model}", config()));
    let add = |agent: Value| ask(&server, ADMIN, "POST", "/admin/v1/agents", &agent);
    let flow = |members: Value| json!({"id": "flow", "kind": "sequence", "members": members});
    let refused = add(flow(json!(["ghost"])));
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.body.contains("members[0]"), "{refused:?}");
    let member = json!({"id": "member", "kind": "echo"});
    assert_eq!(add(member).status, 201);
    assert_eq!(add(flow(json!(["fixed", "member"]))).status, 201);
    assert_eq!(send(&server, "flow"), 200);
    let circle = json!({"kind": "sequence", "members": ["flow"]});
    let circle = ask(&server, ADMIN, "PUT", "/admin/v1/agents/member", &circle);
    assert_eq!(circle.status, 400, "{circle:?}");
    let remove = |id: &str| {
        let path = format!("/admin/v1/agents/{id}");
        ask(&server, ADMIN, "DELETE", &path, &Value::Null)
    };
    let held = remove("member");
    assert_eq!(held.status, 409, "{held:?}");
    assert!(held.body.contains("member of agent flow"), "{held:?}");
    assert_eq!(remove("flow").status, 200);
    let within = json!({"id": "within", "kind": "echo", "layers": ["nothing"]});
    let refused = add(within);
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.body.contains("layers[0]"), "{refused:?}");
    let model = json!({"id": "desk", "kind": "model", "model": "m", "hand_over": ["member"]});
    assert_eq!(add(model).status, 201);
    let held = remove("member");
    assert_eq!(held.status, 409, "{held:?}");
    assert!(
        held.body.contains("may get tasks of agent desk"),
        "{held:?}"
    );
    assert_eq!(remove("desk").status, 200);
    assert_eq!(remove("member").status, 200);
}

/// Secrets are taken, used after a restart, and neither shown nor found in files.
#[test]
fn secrets_of_added_agents_are_not_read_back() {
    let service = Fake::bare(|_| {
        let body = json!({"type": "done"}).to_string();
        ("200 OK", "application/json", body)
    });
    let outbound = "[outbound]\nallow_networks = [\"127.0.0.1\"]\n";
    let server = Server::configured(&format!("{outbound}{}", config()));
    let agent = json!({
        "id": "s", "kind": "http", "url": service.url, "bearer": "s3cret-1",
        "headers": {"X-Key": "s3cret-2"},
    });
    let path = "/admin/v1/agents/s";
    let added = ask(&server, ADMIN, "POST", "/admin/v1/agents", &agent);
    assert_eq!(added.status, 201, "{added:?}");
    let got = ask(&server, ADMIN, "GET", path, &Value::Null);
    let listed = ask(&server, ADMIN, "GET", "/admin/v1/agents", &Value::Null);
    for answer in [&added, &got, &listed] {
        assert!(!answer.body.contains("s3cret"), "{answer:?}");
    }
    // What was read can be written back, changed elsewhere.
    let mut changed = got.json()["config"].clone();
    assert_eq!(changed["bearer"], "***");
    changed["description"] = json!("Changed.");
    let put = ask(&server, ADMIN, "PUT", path, &changed);
    assert_eq!(put.status, 200, "{put:?}");
    // But the secret goes nowhere else.
    changed["url"] = json!(format!("{}/elsewhere", service.url));
    let led_away = ask(&server, ADMIN, "PUT", path, &changed);
    assert_eq!(led_away.status, 400, "{led_away:?}");

    let folder = server.crash();
    let kept = folder.path().join("nuncio-data/agents/s.json");
    let kept = std::fs::read_to_string(kept).unwrap();
    assert!(
        kept.contains("Changed.") && !kept.contains("s3cret"),
        "{kept}"
    );
    let path = folder.path().join("nuncio.toml");
    let server = Server::start_in(folder, &["--config".as_ref(), path.as_os_str()]);
    assert_eq!(send(&server, "s"), 200);
    let asked = service.requests().pop().unwrap();
    assert_eq!(asked.header("authorization"), Some("Bearer s3cret-1"));
    assert_eq!(asked.header("x-key"), Some("s3cret-2"));
}

/// A program that is kept goes with the agent that it was started for.
#[test]
fn a_changed_or_removed_agent_leaves_no_program_behind() {
    let allowing = format!("[server]\nadmin_host_access = true\n{}", config());
    let server = Server::configured(&allowing);
    let program = "import json, os, sys
for line in sys.stdin:
    task = json.loads(line)['task']
    for event in {'type': 'text', 'delta': str(os.getpid())}, {'type': 'done'}:
        print(json.dumps(event | {'task': task}), flush=True)
";
    let path = "/admin/v1/agents/p";
    let mut agent =
        json!({"kind": "process", "mode": "persistent", "command": ["python3", "-c", program]});
    let process = |message: &str| {
        let message = json!({"message": {
            "messageId": message, "role": "ROLE_USER", "parts": [{"text": "x"}]
        }});
        let sent = ask(&server, PLAIN, "POST", "/agents/p/message:send", &message).json();
        let pid = sent["task"]["artifacts"][0]["parts"][0]["text"].as_str();
        let pid = pid.unwrap_or_else(|| panic!("{sent}"));
        std::path::Path::new("/proc").join(pid)
    };
    assert_eq!(ask(&server, ADMIN, "PUT", path, &agent).status, 201);
    let first = process("1");
    assert_eq!(process("2"), first, "it is kept");
    agent["description"] = json!("Changed.");
    assert_eq!(ask(&server, ADMIN, "PUT", path, &agent).status, 200);
    let second = process("3");
    assert_ne!(second, first);
    until(|| !first.exists());
    assert!(second.exists());
    assert_eq!(
        ask(&server, ADMIN, "DELETE", path, &Value::Null).status,
        200
    );
    until(|| !second.exists());
}

/// Who may add agents may not thereby run programs and read files, unless the file says so.
#[test]
fn administrators_reach_the_machine_only_if_allowed() {
    let program = json!({"id": "p", "kind": "process", "command": ["sh", "-c", "echo '{\"type\":\"done\"}'"]});
    let reader =
        json!({"id": "r", "kind": "http", "url": "http://h/", "bearer": {"file": "/etc/passwd"}});
    let server = Server::configured(&config());
    let add =
        |server: &Server, agent: &Value| ask(server, ADMIN, "POST", "/admin/v1/agents", agent);
    for (agent, field) in [(&program, "kind"), (&reader, "bearer")] {
        let refused = add(&server, agent);
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(
            refused.body.contains("server.admin_host_access"),
            "{refused:?}"
        );
        assert!(refused.body.contains(field), "{refused:?}");
    }
    let allowing = format!("[server]\nadmin_host_access = true\n{}", config());
    let server = Server::configured(&allowing);
    assert_eq!(add(&server, &program).status, 201);
    assert_eq!(send(&server, "p"), 200);
}

/// Agents that the embedding program brings along are listed, can be members of others, and are not
/// changed from outside.
#[tokio::test(flavor = "multi_thread")]
async fn agents_of_the_program_are_shown_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nuncio.toml");
    std::fs::write(&file, config()).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let own = agent_fn(AgentInfo::new("own", "Own", "Is code."), |_, _| async {
        Ok("done".to_owned())
    });
    let host = Host::new().agent(own).configuration(&file);
    let mounted = host.store("memory:").mount(&url).await.unwrap();
    let served = axum::Router::new().fallback_service(mounted.service());
    let serving = tokio::spawn(async { axum::serve(listener, served).await });

    let asked = tokio::task::spawn_blocking(move || {
        let ask = |method, path, body: Value| ask_at(&url, ADMIN, method, path, &body);
        let flow = json!({"id": "flow", "kind": "sequence", "members": ["own", "fixed"]});
        let added = ask("POST", "/admin/v1/agents", flow);
        let changed = ask("PUT", "/admin/v1/agents/own", json!({"kind": "echo"}));
        let removed = ask("DELETE", "/admin/v1/agents/own", Value::Null);
        let listed = ask("GET", "/admin/v1/agents", Value::Null).json();
        (added.status, changed.status, removed.status, listed)
    });
    let (added, changed, removed, listed) = asked.await.unwrap();
    assert_eq!((added, changed, removed), (201, 409, 409));
    let agents = listed["agents"].as_array().unwrap();
    let sources: Vec<_> = agents
        .iter()
        .map(|agent| (&agent["id"], &agent["source"]))
        .collect();
    let expected = json!([["fixed", "configuration"], ["flow", "api"], ["own", "code"]]);
    assert_eq!(json!(sources), expected);
    assert_eq!(agents[2]["description"], "Is code.");
    assert!(agents[2].get("config").is_none(), "{listed}");
    serving.abort();
    mounted.stop().await.unwrap();
}

/// A card of a flow says what its members take and give, in whatever order they came, also after one
/// of them has changed.
#[test]
fn a_flow_takes_and_gives_what_its_members_do() {
    let flows = "[[agents]]\nid = \"outer\"\nkind = \"repeat\"\nmembers = [\"inner\"]\n\
                 [[agents]]\nid = \"inner\"\nkind = \"sequence\"\nmembers = [\"fixed\", \"last\"]\n\
                 [[agents]]\nid = \"last\"\nkind = \"echo\"\noutput_modes = [\"image/png\"]\n";
    let server =
        Server::configured(&(config() + "input_modes = [\"text/plain\", \"audio/wav\"]\n" + flows));
    let modes = |agent: &str| {
        let path = format!("/agents/{agent}/.well-known/agent-card.json");
        let card = exchange(&server.url, "GET", &path, &[], "").json();
        json!([card["defaultInputModes"], card["defaultOutputModes"]])
    };
    let expected = json!([["text/plain", "audio/wav"], ["image/png"]]);
    assert_eq!(
        (modes("inner"), modes("outer")),
        (expected.clone(), expected)
    );

    let put = |id: &str, agent: Value| {
        let path = format!("/admin/v1/agents/{id}");
        ask(&server, ADMIN, "PUT", &path, &agent)
    };
    let eye = |modes: Value| json!({"kind": "echo", "input_modes": modes});
    assert_eq!(put("eye", eye(json!(["text/plain"]))).status, 201);
    let both = json!({"kind": "parallel", "members": ["eye", "fixed"]});
    assert_eq!(put("both", both).status, 201);
    assert_eq!(modes("both")[0], json!(["text/plain"]));
    assert_eq!(
        put("eye", eye(json!(["audio/wav", "text/plain"]))).status,
        200
    );
    assert_eq!(modes("both")[0], json!(["audio/wav", "text/plain"]));
}
