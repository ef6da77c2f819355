//! What can be watched on the wire, and what cannot.

use std::io::Write;
use std::sync::{Arc, Mutex};

use http::{HeaderValue, header};
use nuncio_egress::{EgressPolicy, EgressRequest};
use url::Url;

use crate::support::{Canary, Script, egress};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn everything_shows_but_secrets() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let answer =
        "HTTP/1.1 200 OK\r\nset-cookie: s=s3cret\r\nx-a: b\r\nconnection: close\r\n\r\none\ntwo";
    let canary = Canary::start(answer).await;
    let url = Url::parse(&format!("http://127.0.0.1:{}/p?a=1", canary.port)).unwrap();
    let mut token = HeaderValue::from_static("Bearer s3cret");
    token.set_sensitive(true);
    let request = EgressRequest::post(url, "{\"n\": 1}")
        .header(header::AUTHORIZATION, token)
        .secret_query("key", "s3cret");
    assert!(!format!("{request:?}").contains("s3cret"));
    let egress = egress(EgressPolicy::open(), Script::default());
    egress.send(request).await.unwrap().bytes().await.unwrap();
    drop(guard);

    let head = canary.heads.lock().unwrap()[0].clone();
    assert!(head.starts_with("POST /p?a=1&key=s3cret "), "{head}");
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let ours: Vec<&str> = log
        .lines()
        .filter_map(|line| line.split_once("nuncio::wire: "))
        .map(|(_, said)| said)
        .collect();
    for line in [
        "> authorization: (redacted)",
        "> {\"n\": 1}",
        "< set-cookie: (redacted)",
        "< x-a: b",
        "< one",
        "< two",
    ] {
        assert!(ours.contains(&line), "{line}: {ours:?}");
    }
    assert!(ours[0].ends_with("/p?a=1&key=%28redacted%29"), "{ours:?}");
    assert!(!log.contains("s3cret"), "{log}");
}
