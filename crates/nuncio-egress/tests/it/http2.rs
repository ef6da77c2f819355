//! HTTP/2 and nothing else, as gRPC wants it: trailers come through, and the rules stay.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, Version};
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use nuncio_egress::{EgressError, EgressPolicy, EgressRequest, Rule};
use tokio::net::TcpListener;
use url::Url;

use crate::support::{Canary, OK, Script, egress, rule};

/// A server that speaks HTTP/2 only; answers what it was sent, with trailers.
async fn echo() -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let service = service_fn(|request: http::Request<hyper::body::Incoming>| async move {
                assert_eq!(request.version(), Version::HTTP_2);
                assert_eq!(request.headers()["te"], "trailers");
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let mut trailers = HeaderMap::new();
                trailers.insert("x-after", HeaderValue::from_static("all"));
                let body = Full::new(body).with_trailers(std::future::ready(Some(Ok(trailers))));
                Ok::<_, Infallible>(Response::new(body))
            });
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(server.serve_connection(TokioIo::new(socket), service));
        }
    });
    url.parse().unwrap()
}

fn asking(url: &Url, body: impl Into<Bytes>) -> EgressRequest {
    let mut request = EgressRequest::new(Method::POST, url.clone()).http2_only();
    let trailers = HeaderValue::from_static("trailers");
    request.headers.insert("te", trailers);
    request.body = body.into();
    request
}

#[tokio::test]
async fn trailers_come_after_the_body() {
    let url = echo().await;
    let egress = egress(EgressPolicy::open(), Script::default());
    for body in ["", "hello"] {
        let mut response = egress.send(asking(&url, body)).await.unwrap();
        assert!(response.trailers().is_none());
        let read = response.read_up_to(5).await.unwrap();
        assert_eq!(read, body);
        assert_eq!(response.trailers().unwrap()["x-after"], "all");
        assert!(response.chunk().await.unwrap().is_none());
        assert_eq!(response.trailers().unwrap()["x-after"], "all");
    }
    let mut response = egress.send(asking(&url, "too long")).await.unwrap();
    let refused = response.read_up_to(5).await.unwrap_err();
    assert!(matches!(
        refused,
        EgressError::TooLarge { max_bytes: 5, .. }
    ));
}

/// The same guard as without it (S03).
#[tokio::test]
async fn addresses_are_judged_all_the_same() {
    let canary = Canary::start(OK).await;
    let script = Script::default().with("rebind.example", &[&["127.0.0.1"]]);
    let egress = egress(EgressPolicy::default(), script);
    for host in ["127.0.0.1", "rebind.example"] {
        let url: Url = format!("http://{host}:{}/", canary.port).parse().unwrap();
        assert_eq!(rule(egress.send(asking(&url, "")).await), Rule::Loopback);
    }
    assert_eq!(canary.hits(), 0);
}
