//! Who may come in.

use std::time::Duration;

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use nuncio_protocol::signing::{self, SigningKey};
use nuncio_protocol::{OAuthFlows, OperationKind, Timestamp, Version, dialect};
use nuncio_server::{
    ApiKey, Authenticator, InvalidDigest, KeyPlace, RateLimit, TokenRules, TokenSource,
};
use serde_json::{Value, json};

use crate::harness::{Answer, Headers, Served, Setup, rpc, sha256};
use crate::version::PATHS;

pub(crate) fn key(secret: &str, caller: &str) -> ApiKey {
    ApiKey::from_sha256(&sha256(secret), caller, "work").unwrap()
}

async fn guarded() -> Served {
    guarded_by(Setup::default()).await
}

async fn guarded_with_keys() -> Served {
    let mut setup = Setup::default();
    setup.settings.webhook_keys = Some(json!({"keys": [{"kid": "k"}]}));
    guarded_by(setup).await
}

async fn guarded_by(mut setup: Setup) -> Served {
    setup.shape = |endpoint| endpoint.with_legacy_routes(true);
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
    let add = |routes: &mut Vec<_>, method: &str, path: String, body: String| {
        routes.push((method.to_owned(), path, body));
    };
    let bases = [
        "",
        "/agents/echo",
        "/workspaces/work/agents/echo/a2a",
        "/openapi/memorylake/api/v3/workspaces/work/agents/echo/a2a",
    ];
    for base in bases {
        let address = if base.is_empty() { "/" } else { base };
        for version in Version::ALL {
            let dialect = dialect::json_rpc(*version);
            for method in OperationKind::ALL
                .iter()
                .filter_map(|kind| dialect.method(*kind))
            {
                let body = rpc(method, &json!({"id": "t1", "taskId": "t1"})).to_string();
                add(&mut routes, "POST", address.to_owned(), body);
            }
        }
        for (method, path) in PATHS {
            add(&mut routes, method, format!("{base}{path}"), String::new());
            add(
                &mut routes,
                method,
                format!("{base}/v1{path}"),
                String::new(),
            );
        }
        for path in [
            "/a2a",
            "/a2a/stream",
            "/messages/send",
            "/tasks/get",
            "/tasks/cancel",
        ] {
            add(
                &mut routes,
                "POST",
                format!("{base}{path}"),
                "{}".to_owned(),
            );
        }
    }
    for method in ["GET", "POST", "PUT", "DELETE"] {
        add(
            &mut routes,
            method,
            "/admin/v1/agents".to_owned(),
            String::new(),
        );
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
            let body = answer.json();
            let told = body["error"]["message"].is_string() || body["message"].is_string();
            assert!(told, "RPC-08, V03-REST-07: {route}");
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
    let served = guarded_with_keys().await;
    let public = [
        "/.well-known/agent-card.json",
        "/.well-known/agent.json",
        "/agents/echo/.well-known/agent-card.json",
        "/.well-known/jwks.json",
        "/livez",
        "/readyz",
    ];
    for path in public {
        assert_eq!(served.get(path).await.status, 200, "{path}");
    }
    let keys = served.get("/.well-known/jwks.json").await;
    assert_eq!(keys.json(), json!({"keys": [{"kid": "k"}]}));
    assert_eq!(keys.headers["cache-control"], "public, max-age=300");
    let none = guarded().await.get("/.well-known/jwks.json").await;
    assert_eq!(none.status, 404, "no keys, no path");
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

/// BR-181: callers without a credential have a bucket for each address, behind a trusted proxy for
/// the one it tells; callers with a key have one for the caller, wherever they are.
#[tokio::test(start_paused = true)]
async fn br_181_each_caller_has_a_rate_of_its_own() {
    let mut setup = Setup::default();
    setup.authenticator =
        Authenticator::with_keys([key("a", "alice"), key("b", "bob")]).allow_anonymous();
    setup.settings.trusted_proxies = vec!["10.0.0.0/8".parse().unwrap()];
    setup.settings.rate_limit = Some(RateLimit {
        per_second: 0.5,
        burst: 2,
    });
    let (server, _fake) = setup.build();
    let ask = async |peer: &str, from: &str, secret: Option<&str>| {
        let mut request = http::Request::get("/tasks").header("X-Forwarded-For", from);
        if let Some(secret) = secret {
            request = request.header("X-API-Key", secret);
        }
        let request = request
            .body(http_body_util::Empty::<bytes::Bytes>::new())
            .unwrap();
        let reply = server.handle(request, Some(peer.parse().unwrap())).await;
        let wait = reply.headers().get("retry-after").cloned();
        let wait = wait.map_or(0, |wait| wait.to_str().unwrap().parse().unwrap());
        (reply.status().as_u16(), wait)
    };
    for (peer, from, secret, other_peer, other_from, other_secret) in [
        ("192.0.2.1", "", None, "192.0.2.2", "", None),
        ("10.0.0.1", "192.0.2.3", None, "10.0.0.1", "192.0.2.4", None),
        ("2001:db8::1", "", None, "2001:db9::1", "", None),
        ("192.0.2.5", "", Some("a"), "192.0.2.5", "", Some("b")),
    ] {
        for _ in 0..2 {
            assert_eq!(ask(peer, from, secret).await, (200, 0), "{peer} {from}");
        }
        assert_eq!(ask(peer, from, secret).await, (429, 2), "{peer} {from}");
        let other = ask(other_peer, other_from, other_secret).await;
        assert_eq!(other, (200, 0), "{other_peer} {other_from}");
    }
    assert_eq!(
        ask("192.0.2.1", "203.0.113.1", None).await.0,
        429,
        "told by nobody trusted"
    );
    assert_eq!(ask("2001:db8::2", "", None).await.0, 429, "one network");
    assert_eq!(ask("192.0.2.99", "", Some("a")).await.0, 429, "one caller");
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(ask("192.0.2.1", "", None).await, (200, 0));
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

/// AUTH-06, BR-147: keys where the card says they are, and nowhere else.
#[tokio::test]
async fn keys_are_taken_where_the_card_says() {
    let mut setup = Setup::default();
    let places = [
        KeyPlace::Header("x-agent-key".parse().unwrap()),
        KeyPlace::Query("key".to_owned()),
        KeyPlace::Cookie("session".to_owned()),
    ];
    setup.authenticator = Authenticator::with_keys([key("secret", "alice")])
        .with_key_places(places)
        .with_basic(true);
    let served = setup.start().await;
    // alice:secret, bob:secret, alice:wrong
    let basic = ["YWxpY2U6c2VjcmV0", "Ym9iOnNlY3JldA==", "YWxpY2U6d3Jvbmc="];
    let basic = basic.map(|word| format!("Basic {word}"));
    for (path, headers, status) in [
        ("/tasks/t1", &[("X-Agent-Key", "secret")][..], 200),
        ("/tasks/t1?key=secret", &[], 200),
        ("/tasks/t1?key=secret&key=other", &[], 401),
        ("/tasks/t1", &[("Cookie", "a=b; session=secret")], 200),
        ("/tasks/t1", &[("Cookie", "session=wrong")], 401),
        ("/tasks/t1", &[("Authorization", "bearer secret")], 200),
        ("/tasks/t1", &[("Authorization", basic[0].as_str())], 200),
        ("/tasks/t1", &[("Authorization", basic[1].as_str())], 401),
        ("/tasks/t1", &[("Authorization", basic[2].as_str())], 401),
        ("/tasks/t1", &[("X-API-Key", "secret")], 401),
        ("/tasks/t1", &[], 401),
    ] {
        let answer = served.ask("GET", path, headers, "").await;
        assert_eq!(answer.status, status, "{path} {headers:?}");
        if status == 401 {
            let challenges = answer.headers.get_all("www-authenticate").iter();
            assert_eq!(challenges.count(), 2, "AUTH-04: Bearer and Basic");
        }
    }
    let headers = [("A2A-Version", "1.0")];
    let card = served
        .ask("GET", "/.well-known/agent-card.json", &headers, "")
        .await
        .json();
    let schemes = json!({
        "apiKey": {"apiKeySecurityScheme": {"location": "header", "name": "X-Agent-Key"}},
        "apiKey2": {"apiKeySecurityScheme": {"location": "query", "name": "key"}},
        "apiKey3": {"apiKeySecurityScheme": {"location": "cookie", "name": "session"}},
        "basic": {"httpAuthSecurityScheme": {"scheme": "Basic"}},
        "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
    });
    assert_eq!(card["securitySchemes"], schemes);
}

/// A token of an issuer at hand, with the claims that are given over good ones.
fn token(pem: &str, kid: &str, claims: &Value) -> String {
    let mut all = json!({
        "iss": "https://login.example", "aud": "nuncio", "sub": "alice", "exp": 1_700_000_600,
        "scope": "a2a other", "team": "red"
    });
    for (name, value) in claims.as_object().unwrap() {
        all[name] = value.clone();
    }
    let mut header = Header::new(Algorithm::ES256);
    header.kid = Some(kid.to_owned());
    encode(
        &header,
        &all,
        &EncodingKey::from_ec_pem(pem.as_bytes()).unwrap(),
    )
    .unwrap()
}

/// AUTH-07: signature, issuer, audience, times by the server's clock, scopes, and the way they name
/// the caller.
#[tokio::test]
async fn tokens_of_a_known_issuer_are_taken() {
    let (good, pem) = SigningKey::generate(signing::Algorithm::Es256).unwrap();
    let (_, other) = SigningKey::generate(signing::Algorithm::Es256).unwrap();
    let jwks = json!({"keys": [good.public_jwk()]}).to_string();
    let rules = TokenRules::new(&jwks, "https://login.example", "nuncio")
        .unwrap()
        .with_scopes(["a2a"])
        .with_workspace_claim("team");
    let mut flow = nuncio_protocol::ClientCredentialsOAuthFlow::default();
    flow.token_url = "https://login.example/token".to_owned();
    let source = TokenSource::OAuth2 {
        flow: Box::new(OAuthFlows::ClientCredentials(flow)),
        metadata_url: None,
    };
    let mut setup = Setup::default();
    setup.authenticator =
        Authenticator::with_keys([key("secret", "bob")]).with_tokens(rules, source);
    let served = setup.start().await;
    let of = |claims: Value| token(&pem, good.kid(), &claims);
    let cases = [
        (of(json!({})), 200),
        (of(json!({"aud": ["x", "nuncio"]})), 200),
        (of(json!({"scope": null, "scp": ["a2a"]})), 200),
        ("secret".to_owned(), 200),
        (of(json!({"exp": 1_699_999_000})), 401),
        (of(json!({"exp": null})), 401),
        (of(json!({"nbf": 1_700_001_000})), 401),
        (of(json!({"iss": "https://evil.example"})), 401),
        (of(json!({"aud": "another"})), 401),
        (of(json!({"sub": ""})), 401),
        (of(json!({"team": null})), 401),
        (of(json!({"scope": "other"})), 403),
        (token(&other, good.kid(), &json!({})), 401),
    ];
    for (n, (token, status)) in cases.iter().enumerate() {
        let bearer = format!("Bearer {token}");
        let answer = served
            .ask("GET", "/tasks/t1", &[("Authorization", &bearer)], "")
            .await;
        assert_eq!(answer.status, *status, "case {n}: {}", answer.text());
        if n == 0 {
            let caller = served.fake.last().caller;
            assert_eq!(
                (caller.id.as_str(), caller.workspace.as_str()),
                ("alice", "red")
            );
        }
        if *status == 403 {
            assert!(answer.text().contains("a2a"), "AUTH-04: {}", answer.text());
        }
    }
    let headers = [("A2A-Version", "1.0")];
    let card = served
        .ask("GET", "/.well-known/agent-card.json", &headers, "")
        .await
        .json();
    let flows = &card["securitySchemes"]["oauth2"]["oauth2SecurityScheme"]["flows"];
    assert_eq!(
        flows["clientCredentials"]["tokenUrl"],
        "https://login.example/token"
    );
    let last = card["securityRequirements"]
        .as_array()
        .unwrap()
        .last()
        .unwrap();
    assert_eq!(*last, json!({"schemes": {"oauth2": {"list": ["a2a"]}}}));
}

/// Secrets shared with the issuer would let us sign for it; sets without a public key are refused.
#[test]
fn only_public_keys_verify_tokens() {
    for jwks in [
        "{}",
        r#"{"keys":[]}"#,
        r#"{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}"#,
        "no json",
    ] {
        assert!(TokenRules::new(jwks, "i", "a").is_err(), "{jwks}");
    }
}

/// BR-151, AUTH-10: a stream ends with its token.
#[tokio::test(start_paused = true)]
async fn a_stream_ends_when_its_token_does() {
    let (good, pem) = SigningKey::generate(signing::Algorithm::Es256).unwrap();
    let jwks = json!({"keys": [good.public_jwk()]}).to_string();
    let rules = TokenRules::new(&jwks, "https://login.example", "nuncio").unwrap();
    let mut setup = Setup::default();
    setup.authenticator = Authenticator::with_keys([]).with_tokens(rules, TokenSource::Unspecified);
    let (server, fake) = setup.build();
    let _feed = fake.feed();
    let bearer = format!(
        "Bearer {}",
        token(&pem, good.kid(), &json!({"exp": 1_700_000_005}))
    );
    let request = http::Request::get("/tasks/t1:subscribe")
        .header("authorization", bearer)
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .unwrap();
    let reply = server.handle(request, None).await;
    let body = http_body_util::BodyExt::collect(reply.into_body())
        .await
        .unwrap();
    let text = String::from_utf8(body.to_bytes().to_vec()).unwrap();
    assert!(text.contains("UNAUTHENTICATED"), "{text}");
}
