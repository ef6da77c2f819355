//! Names: every answer is judged, and what is judged is what is dialled (S03, S04, BR-171).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use nuncio_egress::{Egress, EgressError, EgressPolicy, Rule};
use url::Url;

use crate::support::{Canary, OK, Script, egress, get, rule};

#[tokio::test]
async fn one_bad_answer_refuses_the_whole_name() {
    let canary = Canary::start(OK).await;
    let script = Script::default()
        .with("mixed.example", &[&["93.184.215.14", "127.0.0.1"]])
        .with("mapped.example", &[&["2606:4700::1", "::ffff:10.0.0.1"]])
        .with("metadata.example", &[&["169.254.169.254"]])
        .with("nat64.example", &[&["64:ff9b::7f00:1"]]);
    let egress = egress(EgressPolicy::default(), script);
    for (name, expected) in [
        ("mixed.example", Rule::Loopback),
        ("mapped.example", Rule::Private),
        ("metadata.example", Rule::LinkLocal),
        ("nat64.example", Rule::Transition),
    ] {
        let url = format!("http://{name}:{}/", canary.port);
        assert_eq!(rule(get(&egress, &url).await), expected, "{name}");
        let url = Url::parse(&url).unwrap();
        assert_eq!(rule(egress.check(&url).await), expected, "{name}");
    }
    assert_eq!(canary.hits(), 0);
}

/// S04: good when checked, bad when dialled.
#[tokio::test]
async fn a_name_that_changes_its_mind_is_never_dialled() {
    let canary = Canary::start(OK).await;
    let script = Arc::new(Script::default());
    let egress = Egress::with_resolver(EgressPolicy::default(), script.clone()).unwrap();
    let url = Url::parse(&format!("http://rebind.example:{}/", canary.port)).unwrap();
    for _ in 0..1_000 {
        script.set("rebind.example", &[&["93.184.215.14"], &["127.0.0.1"]]);
        egress.check(&url).await.unwrap();
        assert_eq!(rule(get(&egress, url.as_str()).await), Rule::Loopback);
    }
    assert_eq!(canary.hits(), 0);
    assert_eq!(script.asked.load(Ordering::SeqCst), 2_000);
}

#[tokio::test]
async fn the_judged_address_is_the_dialled_one() {
    let canary = Canary::start(OK).await;
    let script = Script::default().with("agent.internal", &[&["127.0.0.1"]]);
    let policy = EgressPolicy::default().allowing("127.0.0.0/8".parse().unwrap());
    let egress = egress(policy, script);
    let url = format!("http://agent.internal:{}/x", canary.port);
    assert_eq!(get(&egress, &url).await.unwrap().status(), 200);
    let heads = canary.heads.lock().unwrap();
    assert!(heads[0].starts_with("GET /x HTTP/1.1\r\n"), "{}", heads[0]);
    assert!(heads[0].contains(&format!("host: agent.internal:{}", canary.port)));
}

#[tokio::test]
async fn a_name_without_address_says_so_without_more() {
    let egress = egress(EgressPolicy::default(), Script::default());
    let error = get(&egress, "http://nowhere.example/secret?token=1")
        .await
        .unwrap_err();
    assert!(matches!(error, EgressError::Resolve { .. }), "{error:?}");
    assert!(error.is_connect());
    assert_eq!(
        error.to_string(),
        "the host name of http://nowhere.example cannot be resolved"
    );
}

/// The names by convention are refused before a resolver is asked; allowed, they are resolved.
#[tokio::test]
async fn local_names_follow_the_allow_list() {
    let canary = Canary::start(OK).await;
    let script = Arc::new(Script::default().with("localhost", &[&["127.0.0.1"]]));
    let url = format!("http://localhost:{}/", canary.port);
    let strict = Egress::with_resolver(EgressPolicy::default(), script.clone()).unwrap();
    assert_eq!(rule(get(&strict, &url).await), Rule::LocalName);
    assert_eq!(script.asked.load(Ordering::SeqCst), 0);
    let open = Egress::with_resolver(EgressPolicy::open(), script).unwrap();
    assert_eq!(get(&open, &url).await.unwrap().status(), 200);
}
