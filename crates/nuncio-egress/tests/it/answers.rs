//! Answers: no redirects, bounded bodies, limits with a name (S05, BR-157).

use std::time::Duration;

use nuncio_egress::{EgressError, EgressPolicy, EgressRequest, Limit, Timeouts};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use url::Url;

use crate::support::{Canary, OK, Script, egress, get};

fn open() -> nuncio_egress::Egress {
    egress(EgressPolicy::open(), Script::default())
}

#[tokio::test]
async fn redirects_are_answers_and_are_not_followed() {
    let target = Canary::start(OK).await;
    for status in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary",
        "308 Permanent",
    ] {
        let answer = format!(
            "HTTP/1.1 {status}\r\nlocation: http://127.0.0.1:{}/\r\ncontent-length: 0\r\n\r\n",
            target.port
        );
        let canary = Canary::start(answer).await;
        let url = format!("http://127.0.0.1:{}/", canary.port);
        let response = get(&open(), &url).await.unwrap();
        assert!(response.status().is_redirection(), "{status}");
    }
    assert_eq!(target.hits(), 0);
}

#[tokio::test]
async fn a_body_beyond_the_cap_is_given_up() {
    let said = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n".to_owned() + &"x".repeat(100);
    let unsaid = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_owned() + &"x".repeat(100);
    for answer in [said, unsaid] {
        let canary = Canary::start(answer).await;
        let url = format!("http://127.0.0.1:{}/", canary.port);
        let body = get(&open(), &url).await.unwrap().bytes_up_to(99).await;
        assert!(
            matches!(body, Err(EgressError::TooLarge { max_bytes: 99, .. })),
            "{body:?}"
        );
        let body = get(&open(), &url).await.unwrap().bytes_up_to(100).await;
        assert_eq!(body.unwrap().len(), 100);
    }
}

#[tokio::test]
async fn a_body_that_ends_early_is_broken_not_short() {
    let canary = Canary::start("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nxx").await;
    let url = format!("http://127.0.0.1:{}/", canary.port);
    let body = get(&open(), &url).await.unwrap().bytes().await;
    assert!(matches!(body, Err(EgressError::Broken { .. })), "{body:?}");
}

#[tokio::test]
async fn a_closed_port_is_a_connection_that_did_not_come_about() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let url = format!("http://127.0.0.1:{port}/");
    let error = get(&open(), &url).await.unwrap_err();
    assert!(error.is_connect(), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains(&format!("http://127.0.0.1:{port} directly")),
        "{text}"
    );
}

/// The time stands still until the server has the request; then only the limits are left to wait for.
async fn silent_after(answer: &'static str) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.windows(4).any(|w| w == b"\r\n\r\n") {
            socket.read_buf(&mut head).await.unwrap();
        }
        socket.write_all(answer.as_bytes()).await.unwrap();
        if answer.is_empty() {
            tokio::time::pause();
        }
        std::future::pending::<()>().await;
    });
    Url::parse(&format!("http://127.0.0.1:{port}/")).unwrap()
}

#[tokio::test]
async fn a_server_that_says_nothing_hits_the_first_byte_limit() {
    let mut limits = Timeouts::default();
    limits.first_byte = Some(Duration::from_secs(30));
    limits.total = Some(Duration::from_secs(60));
    let url = silent_after("").await;
    let request = EgressRequest::get(url).timeouts(limits);
    let error = open().send(request).await.unwrap_err();
    assert_eq!(error.limit(), Some(Limit::FirstByte));
    let text = error.to_string();
    assert!(text.contains("first-byte limit of 30s"), "{text}");
}

#[tokio::test]
async fn a_body_that_stalls_hits_the_nearer_of_idle_and_total() {
    for (idle, total, expected) in [(10, 60, Limit::Idle), (60, 10, Limit::Total)] {
        let mut limits = Timeouts::default();
        limits.idle = Some(Duration::from_secs(idle));
        limits.total = Some(Duration::from_secs(total));
        let url = silent_after("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx").await;
        let request = EgressRequest::get(url).timeouts(limits);
        let mut response = open().send(request).await.unwrap();
        assert_eq!(&response.chunk().await.unwrap().unwrap()[..], b"x");
        tokio::time::pause();
        let error = response.chunk().await.unwrap_err();
        assert_eq!(error.limit(), Some(expected));
        tokio::time::resume();
    }
}
