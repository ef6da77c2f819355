//! Proxies: only the configured one, never for the machine itself (BR-161).

use nuncio_egress::{EgressPolicy, ProxyPolicy, Rule};
use url::Url;

use crate::support::{Canary, OK, Script, egress, get, rule};

fn through(proxy: &Canary, except: &str) -> EgressPolicy {
    let url = Url::parse(&format!("http://127.0.0.1:{}", proxy.port)).unwrap();
    let mut policy = EgressPolicy::default().allowing("127.0.0.0/8".parse().unwrap());
    policy.proxy = Some(ProxyPolicy::new(url).except(except));
    policy
}

#[tokio::test]
async fn the_machine_itself_and_exceptions_are_called_directly() {
    let proxy = Canary::start(OK).await;
    let agent = Canary::start(OK).await;
    let script = Script::default()
        .with("localhost", &[&["127.0.0.1"]])
        .with("agent.corp.example", &[&["127.0.0.1"]]);
    let egress = egress(through(&proxy, "other.example, .corp.example"), script);
    for host in ["127.0.0.1", "localhost", "agent.corp.example"] {
        let url = format!("http://{host}:{}/", agent.port);
        assert_eq!(get(&egress, &url).await.unwrap().status(), 200, "{host}");
    }
    assert_eq!((agent.hits(), proxy.hits()), (3, 0));
    assert_eq!(
        get(&egress, "http://far.example/").await.unwrap().status(),
        200
    );
    assert_eq!(proxy.hits(), 1);
    let heads = proxy.heads.lock().unwrap();
    assert!(
        heads[0].starts_with("GET http://far.example/ HTTP/1.1"),
        "{}",
        heads[0]
    );
}

#[tokio::test]
async fn a_failure_names_the_proxy_and_the_address() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut policy = EgressPolicy::default();
    let url = Url::parse(&format!("http://user:secret@127.0.0.1:{port}")).unwrap();
    policy.proxy = Some(ProxyPolicy::new(url));
    let egress = egress(policy, Script::default());
    let text = get(&egress, "http://far.example/")
        .await
        .unwrap_err()
        .to_string();
    assert!(text.contains("http://far.example"), "{text}");
    assert!(
        text.contains(&format!("through the proxy http://127.0.0.1:{port}")),
        "{text}"
    );
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn literal_private_addresses_are_not_handed_to_the_proxy() {
    let proxy = Canary::start(OK).await;
    let egress = egress(through(&proxy, ""), Script::default());
    assert_eq!(rule(get(&egress, "http://10.0.0.1/").await), Rule::Private);
    assert_eq!(proxy.hits(), 0);
}
