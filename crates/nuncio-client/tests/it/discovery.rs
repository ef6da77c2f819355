//! Finding cards (BR-101, BR-107, BR-171, CACHE-04).

use nuncio_client::{CardCache, ConnectError, Credentials, TryOutcome, discover};
use nuncio_egress::{Egress, EgressPolicy};
use serde_json::json;

use crate::support::{Answer, Fake, Request, builder, egress};

fn card() -> serde_json::Value {
    json!({"name": "n", "description": "d", "version": "1", "capabilities": {}, "skills": [],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "supportedInterfaces": [{"url": "/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]})
}

/// A host that has a card at one path and says `otherwise` at every other.
async fn host(at: &'static str, otherwise: Answer) -> Fake {
    Fake::start(move |request: &Request| {
        if request.target == at {
            Answer::json(200, &card())
        } else {
            otherwise.clone()
        }
    })
    .await
}

#[tokio::test]
async fn br_101_the_card_is_found_wherever_it_is() {
    let html = || Answer::with_type(200, "text/html; charset=utf-8", "<html></html>");
    for (asked, at) in [
        ("/x/card.json", "/x/card.json"),
        ("/a/b", "/a/b/.well-known/agent-card.json"),
        ("/a/b/", "/a/b/.well-known/agent-card.json"),
        ("/a/b", "/.well-known/agent-card.json"),
        ("/a/b", "/a/b/.well-known/agent.json"),
        ("/a/b", "/.well-known/agent.json"),
        ("", "/.well-known/agent-card.json"),
        ("/", "/.well-known/agent.json"),
    ] {
        for otherwise in [
            Answer::with_type(404, "text/plain", "no"),
            Answer::with_type(405, "text/plain", "no"),
            Answer::json(200, &json!({"hello": "world"})),
            Answer::with_type(200, "text/plain", "<html>"),
            html(),
        ] {
            let fake = host(at, otherwise).await;
            let found = discover(&egress(), &format!("{}{asked}", fake.base))
                .await
                .unwrap();
            assert_eq!(found.url.path(), at);
            assert_eq!(found.card.name, "n");
            assert_eq!(found.raw, card().to_string());
            for request in fake.requests() {
                assert_eq!(request.header("a2a-version"), Some("1.0"));
            }
        }
    }
}

#[tokio::test]
async fn br_101_the_error_lists_every_try_with_its_outcome() {
    let fake = Fake::start(|request: &Request| match request.target.as_str() {
        "/a/b/.well-known/agent-card.json" => Answer::with_type(404, "text/plain", ""),
        "/.well-known/agent-card.json" => Answer::with_type(200, "text/html", "<html>"),
        "/a/b/.well-known/agent.json" => Answer::with_type(405, "text/plain", ""),
        _ => Answer::with_headers(302, "location: /elsewhere.json\r\n", ""),
    })
    .await;
    let asked = format!("{}/a/b", fake.base);
    let error = discover(&egress(), &asked).await.unwrap_err();
    assert_eq!(error.tries.len(), 4);
    let text = error.to_string();
    for part in [
        "/a/b/.well-known/agent-card.json: HTTP status 404",
        "/.well-known/agent-card.json: an HTML page",
        "/a/b/.well-known/agent.json: HTTP status 405",
        "/.well-known/agent.json: HTTP status 302 Found (redirects are not followed)",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(fake.requests().len(), 4);
}

/// A card that is there but withheld must not lead to another agent's card.
#[tokio::test]
async fn a_withheld_card_ends_the_search() {
    for status in [401, 403, 429, 500, 503] {
        let fake = host(
            "/.well-known/agent-card.json",
            Answer::with_type(status, "text/plain", ""),
        )
        .await;
        let error = discover(&egress(), &format!("{}/a", fake.base))
            .await
            .unwrap_err();
        assert_eq!(error.tries.len(), 1, "{status}");
        assert!(matches!(&error.tries[0].outcome, TryOutcome::Status(s) if s.as_u16() == status));
    }
}

#[tokio::test]
async fn a_card_from_elsewhere_and_an_odd_card_come_with_warnings() {
    let fake = host(
        "/.well-known/agent-card.json",
        Answer::with_type(404, "text/plain", ""),
    )
    .await;
    let found = discover(&egress(), &format!("{}/a", fake.base))
        .await
        .unwrap();
    assert!(
        found.warnings.iter().any(|w| w.contains("at the origin")),
        "{:?}",
        found.warnings
    );
    assert!(
        found.warnings.iter().any(|w| w.contains("skills")),
        "{:?}",
        found.warnings
    );
}

#[tokio::test]
async fn relative_interfaces_belong_to_the_cards_host() {
    let fake = host("/.well-known/agent-card.json", Answer::default()).await;
    let client = builder().connect(&fake.base).await.unwrap();
    assert_eq!(client.interface().url, "/a2a");
    assert_eq!(client.card().name, "n");
}

#[tokio::test]
async fn a_card_for_members_is_asked_for_again_with_credentials() {
    let fake = Fake::start(|request: &Request| match request.header("authorization") {
        Some("Bearer s3cret") => Answer::json(200, &card()),
        _ => Answer::with_type(401, "text/plain", ""),
    })
    .await;
    let error = builder().connect(&fake.base).await.unwrap_err();
    assert!(matches!(error, ConnectError::Discovery(_)), "{error:?}");
    let credentials = Credentials::Bearer("s3cret".into());
    builder()
        .credentials(credentials)
        .connect(&fake.base)
        .await
        .unwrap();
}

#[tokio::test]
async fn br_171_private_addresses_and_redirects_lead_nowhere() {
    let strict = Egress::new(EgressPolicy::default()).unwrap();
    let fake = host("/.well-known/agent-card.json", Answer::default()).await;
    let error = discover(&strict, &fake.base).await.unwrap_err();
    assert!(error.refusal().is_some(), "{error}");
    assert_eq!(fake.requests().len(), 0);
    let lure = Answer::with_headers(
        302,
        &format!("location: {}/.well-known/agent-card.json\r\n", fake.base),
        "",
    );
    let other = Fake::start(move |_: &Request| lure.clone()).await;
    discover(&egress(), &other.base).await.unwrap_err();
    assert_eq!(fake.requests().len(), 0);
}

#[tokio::test]
async fn what_is_no_address_is_said_so() {
    for asked in ["", "ftp://h/", "http://", "file:///etc/passwd"] {
        let error = discover(&egress(), asked).await.unwrap_err();
        assert!(error.tries.is_empty(), "{asked}");
        assert!(
            error.to_string().contains("not an http or https URL"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn cache_04_a_fresh_card_is_not_asked_for_and_a_stale_one_by_its_tag() {
    let fake = Fake::start(|request: &Request| {
        if request.header("if-none-match") == Some("\"v1\"") {
            return Answer::raw("HTTP/1.1 304 Not Modified\r\netag: \"v1\"\r\ncache-control: max-age=60\r\nconnection: close\r\n\r\n");
        }
        let headers = "content-type: application/json\r\netag: \"v1\"\r\ncache-control: max-age=60\r\n";
        Answer::with_headers(200, headers, &card().to_string())
    })
    .await;
    let cache = CardCache::new();
    let connect = || builder().cache(cache.clone()).connect(&fake.base);
    connect().await.unwrap();
    connect().await.unwrap();
    assert_eq!(fake.requests().len(), 1);
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(61)).await;
    tokio::time::resume();
    connect().await.unwrap();
    connect().await.unwrap();
    assert_eq!(fake.requests().len(), 2);
    assert_eq!(fake.requests()[1].header("if-none-match"), Some("\"v1\""));
}

/// CACHE-04: an agent that no longer knows the version or the method makes us look again.
#[tokio::test]
async fn cache_04_signs_of_change_forget_the_card() {
    use nuncio_protocol::AgentService as _;
    let fake = Fake::start(|request: &Request| match request.method.as_str() {
        "GET" => Answer::json(200, &card()),
        _ => request.refused(-32009, 400, "VERSION_NOT_SUPPORTED"),
    })
    .await;
    let cache = CardCache::new();
    for _ in 0..2 {
        let client = builder()
            .cache(cache.clone())
            .connect(&fake.base)
            .await
            .unwrap();
        client
            .send_message(crate::support::call(), crate::support::hello())
            .await
            .unwrap_err();
    }
    let cards = fake.requests().iter().filter(|r| r.method == "GET").count();
    assert_eq!(cards, 2);
}
