//! Who may come in.

use std::time::Duration;

use nuncio_protocol::{OperationKind, Timestamp};
use nuncio_server::{ApiKey, Authenticator, InvalidDigest};
use serde_json::{Value, json};

use crate::harness::{Answer, Headers, Served, Setup, rpc, sha256};
use crate::version::PATHS;

pub(crate) fn key(secret: &str, caller: &str) -> ApiKey {
    ApiKey::from_sha256(&sha256(secret), caller, "work").unwrap()
}

async fn guarded() -> Served {
    let mut setup = Setup::default();
    let past = Timestamp::from_unix_ms(1_600_000_000_000);
    let keys = [
        key("alice-key", "alice"),
        key("bob-key", "bob"),
        key("old-key", "carol").with_expiry(past),
    ];
    setup.authenticator = Authenticator::with_keys(keys);
    setup.start().await
}

/// Every route of this server that does something; a new one belongs here.
fn routes() -> Vec<(String, String, String)> {
    let mut routes = vec![
        ("GET".to_owned(), "/agents".to_owned(), String::new()),
        ("GET".to_owned(), "/".to_owned(), String::new()),
        ("GET".to_owned(), "/nothing".to_owned(), String::new()),
        (
            "POST".to_owned(),
            "/agents/nobody".to_owned(),
            String::new(),
        ),
        (
            "GET".to_owned(),
            "/agents/nobody/tasks".to_owned(),
            String::new(),
        ),
    ];
    for base in ["", "/agents/echo"] {
        for kind in OperationKind::ALL {
            let body = rpc(kind.as_str(), &json!({"id": "t1", "taskId": "t1"}));
            let path = if base.is_empty() { "/" } else { base };
            routes.push(("POST".to_owned(), path.to_owned(), body.to_string()));
        }
        for (method, path) in PATHS {
            routes.push(((*method).to_owned(), format!("{base}{path}"), String::new()));
        }
    }
    routes
}

async fn each(served: &Served, headers: Headers<'_>) -> Vec<(String, Answer)> {
    let mut answers = Vec::new();
    for (method, path, body) in routes() {
        let answer = served.ask(&method, &path, headers, body.clone()).await;
        answers.push((format!("{method} {path} {body}"), answer));
    }
    answers
}

/// BR-146, BR-147, AUTH-02, AUTH-04, AUTH-05, GEN-06: every route x {none, wrong, expired, valid}.
#[tokio::test]
async fn every_route_asks_for_a_credential() {
    for (headers, hint) in [
        (&[][..], ""),
        (&[("Authorization", "Basic YTpi")][..], "invalid_token"),
        (&[("X-API-Key", "")], "invalid_token"),
    ] {
        let served = guarded().await;
        for (index, (route, answer)) in each(&served, headers).await.into_iter().enumerate() {
            if !hint.is_empty() && index >= 10 {
                assert_eq!(answer.status, 429, "{route}");
                continue;
            }
            assert_eq!(answer.status, 401, "{route}");
            let challenge = answer.header("www-authenticate");
            assert!(
                challenge.starts_with("Bearer realm=\"nuncio\""),
                "{challenge}"
            );
            assert_eq!(
                challenge.contains("invalid_token"),
                !hint.is_empty(),
                "{challenge}"
            );
            assert!(
                answer.json()["error"]["message"].is_string(),
                "RPC-08 {route}"
            );
        }
        assert_eq!(served.fake.calls(), 0);
    }
    let served = guarded().await;
    for headers in [
        &[("X-API-Key", "wrong")][..],
        &[("X-API-Key", "old-key")],
        &[("Authorization", "Bearer wrong")],
        &[("Authorization", "alice-key")],
        &[("X-API-Key", "alice-key"), ("X-API-Key", "bob-key")],
        &[
            ("X-API-Key", "alice-key"),
            ("Authorization", "Bearer bob-key"),
        ],
    ] {
        let answer = served.ask("GET", "/tasks", headers, "").await;
        assert_eq!(answer.status, 401, "{headers:?}");
    }
    for headers in [
        &[("X-API-Key", "alice-key")][..],
        &[("Authorization", "Bearer alice-key")],
        &[("Authorization", "bearer  alice-key ")],
        &[
            ("X-API-Key", "alice-key"),
            ("Authorization", "Bearer alice-key"),
        ],
    ] {
        for (route, answer) in each(&served, headers).await {
            assert!(
                ![401, 403, 429].contains(&answer.status.as_u16()),
                "{route}"
            );
        }
        let caller = served.fake.last().caller;
        assert_eq!(
            (caller.id.as_str(), caller.workspace.as_str()),
            ("alice", "work")
        );
    }
}

/// AUTH-05: cards and health are for everybody; AUTH-02: the card says what is asked.
#[tokio::test]
async fn cards_and_health_are_public() {
    let served = guarded().await;
    let public = [
        "/.well-known/agent-card.json",
        "/.well-known/agent.json",
        "/agents/echo/.well-known/agent-card.json",
        "/livez",
        "/readyz",
    ];
    for path in public {
        assert_eq!(served.get(path).await.status, 200, "{path}");
    }
    let headers = [("A2A-Version", "1.0")];
    let card = served.ask("GET", public[0], &headers, "").await.json();
    let schemes = json!({
        "apiKey": {"apiKeySecurityScheme": {"location": "header", "name": "X-API-Key"}},
        "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
    });
    assert_eq!(card["securitySchemes"], schemes);
    let requirements = json!([{"schemes": {"apiKey": {}}}, {"schemes": {"bearer": {}}}]);
    assert_eq!(card["securityRequirements"], requirements);
}

/// AUTH-08, GEN-06: an unknown agent looks like a known one to those who may not come in.
#[tokio::test]
async fn strangers_do_not_learn_which_agents_there_are() {
    let served = guarded().await;
    let known = served.get("/agents/echo/tasks").await;
    let unknown = served.get("/agents/nobody/tasks").await;
    assert_eq!((known.status, &known.body), (unknown.status, &unknown.body));
    let body = rpc("ListTasks", &Value::Null);
    let known = served.post("/agents/echo", &body).await;
    let unknown = served.post("/agents/nobody", &body).await;
    assert_eq!((known.status, &known.body), (unknown.status, &unknown.body));
    assert_eq!(known.json()["id"], Value::Null);
}

/// SEC-06: ten wrong keys in a minute close the door for the rest of it, to that address only.
#[tokio::test(start_paused = true)]
async fn guessing_is_slowed_down() {
    let mut setup = Setup::default();
    setup.authenticator = Authenticator::with_keys([key("k", "alice")]);
    setup.settings.trusted_proxies = vec!["10.0.0.0/8".parse().unwrap()];
    let (server, _fake) = setup.build();
    let ask = async |peer: &str, from: &str, secret: &str| {
        let request = http::Request::get("/tasks")
            .header("X-API-Key", secret)
            .header("X-Forwarded-For", from)
            .body(http_body_util::Empty::<bytes::Bytes>::new())
            .unwrap();
        server.handle(request, Some(peer.parse().unwrap())).await
    };
    for _ in 0..10 {
        assert_eq!(ask("192.0.2.1", "", "wrong").await.status(), 401);
    }
    tokio::time::advance(Duration::from_secs(20)).await;
    let closed = ask("192.0.2.1", "203.0.113.9", "k").await;
    assert_eq!(closed.status(), 429);
    assert_eq!(closed.headers()["retry-after"], "40");
    assert_eq!(ask("192.0.2.2", "", "k").await.status(), 200);
    assert_eq!(
        ask("10.0.0.1", "192.0.2.1, 10.0.0.2", "k").await.status(),
        429
    );
    assert_eq!(
        ask("10.0.0.1", "192.0.2.1, 192.0.2.3", "k").await.status(),
        200
    );
    tokio::time::advance(Duration::from_secs(41)).await;
    assert_eq!(ask("192.0.2.1", "", "k").await.status(), 200);
    for n in 0..10 {
        let peer = format!("2001:db8::{n}");
        assert_eq!(ask(&peer, "", "wrong").await.status(), 401);
    }
    assert_eq!(
        ask("2001:db8::99", "", "k").await.status(),
        429,
        "one network"
    );
    assert_eq!(ask("2001:db9::1", "", "k").await.status(), 200);
}

/// AUTH-07: only digests are configured, and only well-formed ones; a key is never shown.
#[test]
fn keys_are_known_by_their_digest() {
    let digest = sha256("k");
    let upper = ApiKey::from_sha256(&digest.to_uppercase(), "alice", "w");
    assert!(upper.is_ok());
    for bad in [
        "",
        "k",
        &digest[1..],
        &digest.replace(['a', 'b'], "g"),
        &"é".repeat(32),
    ] {
        let key = ApiKey::from_sha256(bad, "alice", "w");
        assert_eq!(key.err(), Some(InvalidDigest), "{bad}");
    }
    assert!(!format!("{:?}", key("k", "alice")).contains(&digest));
}
