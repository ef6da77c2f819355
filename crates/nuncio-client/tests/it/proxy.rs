//! BR-161: a proxy in the environment is none of a library's business.

use nuncio_protocol::{AgentService as _, Binding};

use crate::support::{Fake, Request, call, hello, task_item};

const INNER: &str = "proxy::inner_call_to_localhost";

/// Runs the test below again with proxies in its environment that lead nowhere.
#[test]
fn br_161_the_environments_proxies_do_not_reach_local_calls() {
    let run = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", INNER, "--ignored"])
        .envs([
            ("HTTP_PROXY", "http://127.0.0.1:1"),
            ("http_proxy", "http://127.0.0.1:1"),
            ("HTTPS_PROXY", "http://127.0.0.1:1"),
            ("ALL_PROXY", "http://127.0.0.1:1"),
        ])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
}

#[tokio::test]
#[ignore = "run by the test above, with proxies set"]
async fn inner_call_to_localhost() {
    let fake = Fake::start(|request: &Request| request.ok(&task_item("COMPLETED"))).await;
    let mut card = fake.card(Binding::JsonRpc, false);
    let url = &mut card.supported_interfaces[0].url;
    *url = url.replace("127.0.0.1", "localhost");
    let client = crate::support::builder().build(card).unwrap();
    client.send_message(call(), hello()).await.unwrap();
}
