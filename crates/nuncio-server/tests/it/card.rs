//! Cards: where they are, what they say, how they are kept.

use std::sync::Arc;

use nuncio_protocol::signing::{self, Algorithm, KeySet, SigningKey, VerifyingKey};
use nuncio_protocol::{AgentCard, Timestamp, Version};
use nuncio_server::{Authenticator, Endpoint};
use serde_json::{Value, json};

use crate::fake::Fake;
use crate::harness::{Served, Setup, rpc, serve};

const CARD: &str = "/.well-known/agent-card.json";
const OLD_CARD: &str = "/.well-known/agent.json";

fn urls(card: &Value) -> Vec<String> {
    let interfaces = card["supportedInterfaces"].as_array().unwrap().iter();
    interfaces
        .map(|i| i["url"].as_str().unwrap().to_owned())
        .collect()
}

/// An agent that speaks 1.0 only, over JSON only.
async fn serve_1_0() -> Served {
    let mut setup = Setup::default();
    setup.settings.grpc = false;
    setup.shape = |endpoint| endpoint.with_dialects([Version::V1_0]);
    setup.start().await
}

/// CARD-01, CARD-02, CARD-05, CARD-06, CARD-12, CARD-13, CARD-14: a pure 1.0 card.
#[tokio::test]
async fn the_card_says_where_and_what() {
    let served = serve_1_0().await;
    let answer = served.get(CARD).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    let card = answer.json();
    let url = format!("http://{}/agents/echo", served.address);
    let expected = json!([
        {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        {"url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
    ]);
    assert_eq!(card["supportedInterfaces"], expected);
    assert_eq!(card["capabilities"]["streaming"], true);
    assert_eq!(card["version"], "1.2.3");
    for old in ["url", "protocolVersion", "preferredTransport"] {
        assert!(card.get(old).is_none(), "CARD-14: {old}");
    }
    assert!(
        card.get("securitySchemes").is_none(),
        "nothing is asked of anonymous callers"
    );
    assert_eq!(
        served.get(&format!("/agents/echo{CARD}")).await.json(),
        card
    );
    assert_eq!(
        served.get(&format!("/agents/nobody{CARD}")).await.status,
        404
    );
}

/// BR-102, OLD-01: both names, the same bytes; the old one says which is the right one.
#[tokio::test]
async fn the_old_name_is_served_and_deprecated() {
    let served = serve().await;
    for base in ["", "/agents/echo"] {
        let new = served.get(&format!("{base}{CARD}")).await;
        let old = served.get(&format!("{base}{OLD_CARD}")).await;
        assert_eq!((old.status, &old.body), (new.status, &new.body));
        assert!(old.header("deprecation").starts_with('@'));
        let canonical = format!(
            "<http://{}/agents/echo{CARD}>; rel=\"canonical\"",
            served.address
        );
        assert_eq!(old.header("link"), canonical);
        assert!(!new.headers.contains_key("deprecation"));
    }
}

/// BR-103: HEAD has the same headers and no body.
#[tokio::test]
async fn head_is_get_without_the_body() {
    let served = serve().await;
    let get = served.get(CARD).await;
    let head = served.ask("HEAD", CARD, &[], "").await;
    assert_eq!(head.status, 200);
    assert!(head.body.is_empty());
    for name in [
        "etag",
        "cache-control",
        "content-type",
        "content-length",
        "last-modified",
    ] {
        assert_eq!(head.header(name), get.header(name), "{name}");
        assert_ne!(head.header(name), "", "{name}");
    }
    let post = served.ask("POST", CARD, &[], "").await;
    assert_eq!(
        (post.status.as_u16(), post.header("allow")),
        (405, "GET, HEAD")
    );
}

/// BR-104, CACHE-01, CACHE-02, CACHE-03: validators; a change of the card changes its tag.
#[tokio::test]
async fn cards_are_cached_and_revalidated() {
    let served = serve().await;
    let card = served.get(CARD).await;
    let etag = card.header("etag").to_owned();
    assert_eq!(card.header("cache-control"), "public, max-age=300");
    assert_eq!(card.header("vary"), "A2A-Version");
    let modified = card.header("last-modified").to_owned();
    assert_eq!(modified, "Tue, 14 Nov 2023 22:13:20 GMT");
    let weak = format!("W/{etag}");
    let list = format!("\"x\", {weak} , \"y\"");
    for known in [etag.as_str(), &weak, &list, "*"] {
        let answer = served
            .ask("GET", CARD, &[("If-None-Match", known)], "")
            .await;
        assert_eq!(answer.status, 304, "{known}");
        assert!(answer.body.is_empty());
        assert_eq!(answer.header("etag"), etag);
    }
    for unknown in ["\"x\"", "", "\"x\", \"y\""] {
        let answer = served
            .ask("GET", CARD, &[("If-None-Match", unknown)], "")
            .await;
        assert_eq!(answer.status, 200, "{unknown}");
    }
    let since = [("If-Modified-Since", modified.as_str())];
    assert_eq!(served.ask("GET", CARD, &since, "").await.status, 304);
    let both = [since[0], ("If-None-Match", "\"x\"")];
    assert_eq!(served.ask("GET", CARD, &both, "").await.status, 200);
    let earlier = [("If-Modified-Since", "Tue, 14 Nov 2023 22:13:19 GMT")];
    assert_eq!(served.ask("GET", CARD, &earlier, "").await.status, 200);

    let mut changed = crate::harness::card();
    changed.description = "Says it louder.".to_owned();
    let service = served.fake.clone();
    let board = served.server.switchboard();
    board
        .insert(Endpoint::new("echo", changed, service))
        .unwrap();
    let answer = served
        .ask("GET", CARD, &[("If-None-Match", &etag)], "")
        .await;
    assert_eq!(answer.status, 200);
    assert_ne!(answer.header("etag"), etag);
}

/// BR-098: `public_url` goes before everything; no slash too many or too few.
#[tokio::test]
async fn the_public_address_is_the_configured_one() {
    for public in ["https://x.example/y", "https://x.example/y/"] {
        let mut setup = Setup::default();
        setup.settings.public_url = Some(public.to_owned());
        setup.settings.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        let served = setup.start().await;
        let headers = [
            ("X-Forwarded-Host", "evil.example"),
            ("Host", "evil.example"),
        ];
        let card = served.ask("GET", CARD, &headers, "").await.json();
        let expected = "https://x.example/y/agents/echo";
        assert_eq!(urls(&card), [expected; 4], "no gRPC below a path");
    }
}

/// BR-098, CACHE-05: forwarding headers count from trusted peers only.
#[tokio::test]
async fn forwarding_headers_count_from_trusted_peers() {
    let cases: &[(&[(&str, &str)], &str)] = &[
        (
            &[
                ("X-Forwarded-Proto", "https"),
                ("X-Forwarded-Host", "a.example, inner"),
                ("X-Forwarded-Prefix", "/p/"),
            ],
            "https://a.example/p",
        ),
        (
            &[(
                "Forwarded",
                "for=1.2.3.4;proto=https;host=\"b.example:8443\", for=5.6.7.8",
            )],
            "https://b.example:8443",
        ),
        (
            &[("X-Forwarded-Proto", "https"), ("Host", "c.example")],
            "https://c.example",
        ),
        (
            &[
                ("X-Forwarded-Host", "d.example/\"<x>"),
                ("Host", "d.example"),
            ],
            "http://d.example",
        ),
        (
            &[("X-Forwarded-Proto", "javascript"), ("Host", "e.example")],
            "http://e.example",
        ),
    ];
    let mut setup = Setup::default();
    setup.settings.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    let trusting = setup.start().await;
    let wary = serve().await;
    for (headers, base) in cases {
        let card = trusting.ask("GET", CARD, headers, "").await.json();
        let expected = format!("{base}/agents/echo");
        let over_json = urls(&card).into_iter().filter(|url| url.contains("://"));
        assert_eq!(
            over_json.collect::<Vec<_>>(),
            vec![expected; 4],
            "{headers:?}"
        );
        let card = wary.ask("GET", CARD, headers, "").await.json();
        let host = headers
            .iter()
            .find(|(name, _)| *name == "Host")
            .map(|(_, host)| *host);
        let host = host.map_or(wary.address.to_string(), str::to_owned);
        assert_eq!(
            urls(&card)[0],
            format!("http://{host}/agents/echo"),
            "{headers:?}"
        );
    }
}

/// Many hosts do not make the server keep many cards, and each gets its own.
#[tokio::test]
async fn each_host_has_its_card() {
    let served = serve().await;
    for n in 0..200 {
        let host = format!("h{n}.example");
        let card = served.ask("GET", CARD, &[("Host", &host)], "").await.json();
        assert_eq!(urls(&card)[0], format!("http://{host}/agents/echo"));
    }
}

/// BR-100, BR-117, CARD-07: each address in the card answers in its binding.
#[tokio::test]
async fn the_addresses_in_the_card_answer() {
    let served = serve().await;
    let card = served.get(CARD).await.json();
    let origin = format!("http://{}", served.address);
    let mut seen = Vec::new();
    for interface in card["supportedInterfaces"].as_array().unwrap() {
        let text = |member: &str| interface[member].as_str().unwrap();
        let (binding, version) = (text("protocolBinding"), text("protocolVersion"));
        let headers = [("A2A-Version", version)];
        let path = text("url").strip_prefix(&origin).unwrap_or_default();
        match binding {
            "JSONRPC" => {
                let method = if version == "1.0" {
                    "GetTask"
                } else {
                    "tasks/get"
                };
                let body = rpc(method, &json!({"id": "t1"})).to_string();
                assert_eq!(served.ask("POST", path, &headers, body).await.code(), 0);
            }
            "HTTP+JSON" => {
                let prefix = if version == "1.0" { "" } else { "/v1" };
                let path = format!("{path}{prefix}/tasks/t1");
                assert_eq!(served.ask("GET", &path, &headers, "").await.status, 200);
            }
            _ => assert_eq!(text("url"), served.address.to_string()),
        }
        seen.push((binding.to_owned(), version.to_owned()));
    }
    let all = ["1.0", "0.3"].into_iter().flat_map(|version| {
        ["JSONRPC", "HTTP+JSON", "GRPC"].map(|binding| (binding.to_owned(), version.to_owned()))
    });
    assert_eq!(seen, all.collect::<Vec<_>>());
}

/// BR-105: three agents, each with its card and its calls; a list at the root; coming and going.
#[tokio::test]
async fn several_agents_share_a_server() {
    let served = serve().await;
    let board = served.server.switchboard();
    let mut fakes = Vec::new();
    for name in ["alpha", "beta"] {
        let fake = std::sync::Arc::new(Fake::default());
        let mut card = AgentCard::default();
        card.name = name.to_uppercase();
        board
            .insert(Endpoint::new(name, card, fake.clone()))
            .unwrap();
        fakes.push(fake);
    }
    let list = served.get("/agents").await.json();
    let listed: Vec<_> = list["agents"].as_array().unwrap().iter().collect();
    let ids: Vec<_> = listed
        .iter()
        .map(|agent| agent["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["alpha", "beta", "echo"]);
    for agent in &listed {
        let origin = format!("http://{}", served.address);
        let card = agent["cardUrl"]
            .as_str()
            .unwrap()
            .strip_prefix(&origin)
            .unwrap();
        assert_eq!(served.get(card).await.json()["name"], agent["name"]);
    }
    assert_eq!(served.get("/agents/alpha/tasks").await.status, 200);
    assert_eq!((fakes[0].calls(), fakes[1].calls()), (1, 0));
    let missing = served.get("/agents/gamma/tasks").await;
    assert_eq!(missing.status, 404);
    assert_eq!(missing.json()["error"]["status"], "NOT_FOUND");
    assert!(board.remove(&"alpha".into()));
    assert_eq!(served.get("/agents/alpha/tasks").await.status, 404);
    board.set_default(Some("beta".into()));
    assert_eq!(served.get(CARD).await.json()["name"], "BETA");
    assert!(board.remove(&"beta".into()));
    assert_eq!(served.get(CARD).await.status, 404);
    assert_eq!(served.get("/tasks").await.status, 404);
    assert_eq!(served.rpc("ListTasks", json!({})).await.status, 404);
    assert!(
        board
            .insert(Endpoint::new("a/b", AgentCard::default(), fakes[0].clone()))
            .is_err()
    );
    for taken in ["tasks", "v1", "extendedAgentCard"] {
        let endpoint = Endpoint::new(taken, AgentCard::default(), fakes[0].clone());
        assert!(board.insert(endpoint).is_err(), "TEN-03: {taken}");
    }
    assert!(
        board
            .insert(Endpoint::new("", AgentCard::default(), fakes[0].clone()))
            .is_err()
    );
}

/// OP-XCARD-02, OP-XCARD-03: the extended card has addresses too, is private, and not for all.
#[tokio::test]
async fn the_extended_card_is_for_authenticated_callers() {
    let mut extended = crate::harness::card();
    extended.description = "Knows more.".to_owned();
    let mut setup = Setup::default();
    setup.fake.extended = Some(extended);
    let served = setup.start().await;
    let answer = served.get("/extendedAgentCard").await;
    assert_eq!(answer.status, 401, "anonymous callers do not see it");
    assert_ne!(answer.header("www-authenticate"), "");

    let mut setup = Setup::default();
    setup.authenticator = Authenticator::with_keys([crate::auth::key("secret", "alice")]);
    setup.shape = |endpoint| {
        let mut extended = endpoint.card().clone();
        extended.description = "Knows more.".to_owned();
        endpoint.with_extended_card(extended)
    };
    let served = setup.start().await;
    let key = [("X-API-Key", "secret")];
    let answer = served.ask("GET", "/extendedAgentCard", &key, "").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("cache-control"), "private, no-cache");
    let vary: Vec<_> = answer.headers.get_all("vary").iter().collect();
    assert!(
        vary.iter()
            .any(|v| v.to_str().unwrap().contains("Authorization")),
        "{vary:?}"
    );
    let url = format!("http://{}/agents/echo", served.address);
    assert_eq!(urls(&answer.json())[..2], [url.clone(), url]);
    assert_eq!(answer.json()["description"], "Knows more.");
    let body = rpc("GetExtendedAgentCard", &Value::Null).to_string();
    let answer = served.ask("POST", "/", &key, body).await;
    assert_eq!(
        answer.json()["result"]["description"],
        "Knows more.",
        "OP-XCARD-06"
    );
}

/// The template's own security and signatures are not served: they would not be true.
#[tokio::test]
async fn the_card_declares_what_is_enforced() {
    let mut setup = Setup::default();
    setup
        .card
        .signatures
        .push(nuncio_protocol::AgentCardSignature::default());
    setup.authenticator =
        Authenticator::with_keys([crate::auth::key("k", "alice")]).allow_anonymous();
    let served: Served = setup.start().await;
    let card = served
        .ask("GET", CARD, &[("A2A-Version", "1.0")], "")
        .await
        .json();
    assert!(card.get("signatures").is_none());
    let requirements = json!([{"schemes": {"apiKey": {}}}, {"schemes": {"bearer": {}}}, {}]);
    assert_eq!(card["securityRequirements"], requirements, "AUTH-02");
}

/// SIGN-01, SIGN-12, BR-109, CACHE-05: what is served is signed as it is served, in each form.
#[tokio::test]
async fn served_cards_are_signed_as_they_are() {
    let (key, _) = SigningKey::generate(Algorithm::EdDsa).unwrap();
    let mut keys = KeySet::new();
    keys.add(VerifyingKey::of(&key).unwrap());
    let mut setup = Setup::default();
    setup.authenticator = Authenticator::with_keys([crate::auth::key("secret", "alice")]);
    setup.settings.card_key = Some(Arc::new(key.for_sdks_too()));
    setup.shape = |endpoint| {
        let extended = endpoint.card().clone();
        endpoint.with_extended_card(extended)
    };
    let served = setup.start().await;
    let now = Timestamp::from_unix_ms(1_700_000_000_000);
    let headers = |version: &'static str| [("A2A-Version", version), ("X-API-Key", "secret")];
    let judge = |text: &str| signing::verify(text, &keys, now);
    for (path, version) in [(CARD, "1.0"), (CARD, ""), ("/extendedAgentCard", "1.0")] {
        let answer = served.ask("GET", path, &headers(version), "").await;
        let verdict = judge(answer.text());
        assert!(verdict.is_valid(), "{path} {version}: {verdict:?}");
        let forged = answer.text().replace("Says it again.", "Says it never.");
        assert!(!judge(&forged).is_valid(), "SIGN-10");
    }
    let older = served.ask("GET", CARD, &headers("0.3"), "").await;
    assert!(
        older.json().get("signatures").is_none(),
        "another form, another signature"
    );
}

/// BR-098, BR-163: behind a proxy that takes a prefix off, each address in the card leads back here
/// through it; a public address that is configured stays what it is.
#[tokio::test]
async fn addresses_lead_through_the_proxy_in_front() {
    for (prefix, public) in [
        ("", None),
        ("/gw", None),
        ("/a/b", None),
        ("/gw", Some("https://gw.example/gw")),
        ("/gw", Some("https://gw.example/gw/")),
    ] {
        let mut setup = Setup::default();
        setup.settings.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        setup.settings.public_url = public.map(str::to_owned);
        let served = setup.start().await;
        let through = |method: &'static str, url: String, version: String, body: String| {
            let served = &served;
            async move {
                let path = url
                    .strip_prefix("https://gw.example")
                    .unwrap_or_else(|| panic!("{url}"));
                let path = path.strip_prefix(prefix).unwrap_or_else(|| panic!("{url}"));
                let headers = [
                    ("X-Forwarded-Proto", "https"),
                    ("X-Forwarded-Host", "gw.example"),
                    ("X-Forwarded-Prefix", prefix),
                    ("A2A-Version", version.as_str()),
                ];
                served.ask(method, path, &headers, body).await
            }
        };
        let own = format!("https://gw.example{prefix}{CARD}");
        let card = through("GET", own, String::new(), String::new())
            .await
            .json();
        let interfaces = card["supportedInterfaces"].as_array().unwrap();
        let over_json = interfaces.iter().filter(|i| i["protocolBinding"] != "GRPC");
        let mut count = 0;
        for interface in over_json {
            let text = |member: &str| interface[member].as_str().unwrap().to_owned();
            let (url, version) = (text("url"), text("protocolVersion"));
            let older = version == "0.3";
            let answer = if interface["protocolBinding"] == "JSONRPC" {
                let method = if older { "tasks/get" } else { "GetTask" };
                let body = rpc(method, &json!({"id": "t1"})).to_string();
                through("POST", url, version, body).await
            } else {
                let below = if older { "/v1/tasks/t1" } else { "/tasks/t1" };
                through("GET", format!("{url}{below}"), version, String::new()).await
            };
            assert_eq!(answer.status, 200, "{prefix} {public:?} {interface}");
            assert!(answer.json().get("error").is_none(), "{}", answer.text());
            count += 1;
        }
        assert_eq!(count, 4);
        assert_eq!(card["url"], interfaces[0]["url"], "the older member too");
        let listed = card["additionalInterfaces"].as_array().unwrap().iter();
        let prefix = format!("https://gw.example{prefix}/agents/");
        for interface in listed.filter(|i| i["transport"] != "GRPC") {
            assert!(
                interface["url"].as_str().unwrap().starts_with(&prefix),
                "{interface}"
            );
        }
    }
}
