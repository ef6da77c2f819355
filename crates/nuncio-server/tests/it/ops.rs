//! What operators rely on: limits, timeouts, health, CORS, stopping, HTTP/2, workers, mounting.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use nuncio_server::{RateLimit, Server, Workers};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::harness::{JSON, PATIENCE, Setup, rpc, say, serve};

/// A client that knows before that HTTP/2 is spoken.
pub(crate) async fn h2(address: SocketAddr) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(address).await.unwrap();
    let io = TokioIo::new(stream);
    let executor = TokioExecutor::new();
    let shaken = hyper::client::conn::http2::handshake(executor, io).await;
    let (client, connection) = shaken.unwrap();
    tokio::spawn(connection);
    client
}

/// BR-145, LIM-01, LIM-02: the limit holds with and without a length, and is answered.
#[tokio::test]
async fn bodies_beyond_the_limit_are_refused_early() {
    let mut setup = Setup::default();
    setup.settings.max_body_bytes = 100_000;
    let served = setup.start().await;
    for path in ["/", "/message:send"] {
        let mut raw = served
            .raw(format!(
                "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\n\r\n"
            ))
            .await;
        raw.until("\r\n\r\n").await;
        assert!(raw.text().starts_with("HTTP/1.1 413 "), "{}", raw.text());
        let mut raw = served
            .raw(format!(
                "POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            ))
            .await;
        let chunk = format!("2710\r\n{}\r\n", "x".repeat(10_000));
        for _ in 0..11 {
            raw.stream.write_all(chunk.as_bytes()).await.unwrap();
        }
        raw.until("}").await;
        assert!(raw.text().starts_with("HTTP/1.1 413 "), "{}", raw.text());
    }
    let whole = served.ask("POST", "/", JSON, vec![b' '; 150_000]).await;
    assert_eq!((whole.status.as_u16(), whole.code()), (413, -32600));
    assert!(whole.text().contains("100000 bytes"), "{}", whole.text());
    let just = served.ask("POST", "/", JSON, vec![b' '; 100_000]).await;
    assert_eq!((just.status.as_u16(), just.code()), (200, -32700));
    let mut client = h2(served.address).await;
    let request = Request::post(format!("http://{}/message:send", served.address));
    let request = request.body(Full::from(vec![b' '; 150_000])).unwrap();
    let reply = client.send_request(request).await.unwrap();
    assert_eq!(reply.status(), 413);
    assert_eq!(served.fake.calls(), 0);
}

/// BR-145: a long body that is refused does not cost the connection its answer.
#[tokio::test]
async fn a_refused_upload_still_gets_its_answer() {
    let served = serve().await;
    let answer = served
        .ask("POST", "/message:send", JSON, vec![b'x'; 12 << 20])
        .await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.json()["error"]["status"], "RESOURCE_EXHAUSTED");
}

/// LIM-01: the agent's own limit goes before the server's.
#[tokio::test]
async fn an_agent_may_have_its_own_body_limit() {
    let mut setup = Setup::default();
    setup.shape = |endpoint| endpoint.with_max_body_bytes(10);
    let served = setup.start().await;
    assert_eq!(served.rpc("GetTask", json!({"id": "t1"})).await.status, 413);
}

/// SEC-06, LIM-01: slow heads, slow bodies and idle connections are let go.
#[tokio::test]
async fn slow_peers_are_let_go() {
    let mut setup = Setup::default();
    setup.settings.head_timeout = Duration::from_millis(400);
    setup.settings.body_idle_timeout = Duration::from_millis(400);
    setup.settings.keep_alive = Duration::from_millis(1_200);
    let served = setup.start().await;
    let silent = served.raw("").await.read_to_close().await;
    assert_eq!(silent, "");
    let half_a_head = served.raw("GET /livez HT").await.read_to_close().await;
    assert_eq!(half_a_head, "");
    let half = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{";
    let half_a_body = served.raw(half).await.read_to_close().await;
    assert!(half_a_body.starts_with("HTTP/1.1 408 "), "{half_a_body}");
    assert!(half_a_body.contains("-32600"), "{half_a_body}");
    let mut idle = served.raw("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").await;
    idle.until("\"ok\"}").await;
    let start = tokio::time::Instant::now();
    idle.read_to_close().await;
    let waited = start.elapsed();
    assert!(
        waited >= Duration::from_millis(800),
        "{waited:?}: head timeout is not for idling"
    );
    let mut second = served.raw("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").await;
    second.until("\"ok\"}").await;
    second.stream.write_all(b"GET /li").await.unwrap();
    second.read_to_close().await;
}

/// A request that takes long is not an idle connection.
#[tokio::test]
async fn a_long_request_outlives_the_idle_limits() {
    let mut setup = Setup::default();
    setup.settings.head_timeout = Duration::from_millis(400);
    setup.settings.keep_alive = Duration::from_millis(200);
    let served = setup.start().await;
    let (answer, ()) = tokio::join!(served.rpc("SendMessage", say("wait")), async {
        tokio::time::sleep(Duration::from_millis(1_000)).await;
        served.fake.release.notify_one();
    });
    assert_eq!(answer.json()["result"]["task"]["id"], "t1");
}

/// BR-021: a peer that does not take what is sent is dropped after the limit.
#[tokio::test]
async fn a_peer_that_does_not_read_is_dropped() {
    use crate::fake::status_event;
    use nuncio_protocol::TaskState;
    let mut setup = Setup::default();
    setup.settings.write_timeout = Duration::from_millis(200);
    let served = setup.start().await;
    let feed = served.fake.feed();
    let flood = tokio::spawn(async move {
        let mut position = 0;
        while feed
            .send(Ok(status_event(position, TaskState::Working)))
            .is_ok()
        {
            position += 1;
            if position % 1_000 == 0 {
                tokio::task::yield_now().await;
            }
        }
    });
    let raw = served
        .raw("GET /tasks/t1:subscribe HTTP/1.1\r\nHost: x\r\n\r\n")
        .await;
    tokio::time::timeout(PATIENCE, flood)
        .await
        .expect("dropped")
        .unwrap();
    drop(raw);
}

/// Heads have their limits: 100 headers, 64 KiB.
#[tokio::test]
async fn heads_have_limits() {
    let served = serve().await;
    let many: String = (0..101).map(|n| format!("h{n}: x\r\n")).collect();
    let text = served
        .raw(format!("GET /livez HTTP/1.1\r\n{many}\r\n"))
        .await
        .read_to_close()
        .await;
    assert!(text.starts_with("HTTP/1.1 431 "), "{text}");
    let long = "x".repeat(70_000);
    let head = format!("GET /livez HTTP/1.1\r\nHost: x\r\nlong: {long}\r\n\r\n");
    let text = served.raw(head).await.read_to_close().await;
    assert!(text.starts_with("HTTP/1.1 431 "), "{text}");
    let long = "x".repeat(60_000);
    let mut raw = served
        .raw(format!(
            "GET /livez HTTP/1.1\r\nHost: x\r\nlong: {long}\r\n\r\n"
        ))
        .await;
    raw.until("\"ok\"}").await;
}

/// Liveness and readiness: the check, and the drain flag before stopping.
#[tokio::test]
async fn health_is_told() {
    let (server, fake) = Setup::default().build();
    let good = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&good);
    let server = server.with_readiness(Arc::new(move || {
        let asked = Arc::clone(&asked);
        Box::pin(async move { asked.load(Ordering::SeqCst) })
    }));
    let served = crate::harness::Served::start(server, fake).await;
    assert_eq!(served.get("/readyz").await.status, 200);
    good.store(false, Ordering::SeqCst);
    assert_eq!(served.get("/readyz").await.status, 503);
    good.store(true, Ordering::SeqCst);
    served.server.drain();
    assert_eq!(served.get("/readyz").await.status, 503);
    assert_eq!(served.get("/livez").await.status, 200);
    assert_eq!(served.ask("HEAD", "/livez", &[], "").await.status, 200);
}

/// BR-183, REST-11: preflights of configured origins, with every header a client needs.
#[tokio::test]
async fn browsers_of_configured_origins_may_call() {
    let mut setup = Setup::default();
    setup.settings.cors_origins = vec!["https://app.example".to_owned()];
    let served = setup.start().await;
    let asked = "a2a-version, a2a-extensions, authorization, content-type, last-event-id";
    let preflight = async |origin: &str, path: &str| {
        let headers = [
            ("Origin", origin),
            ("Access-Control-Request-Method", "POST"),
            ("Access-Control-Request-Headers", asked),
        ];
        served.ask("OPTIONS", path, &headers, "").await
    };
    for path in ["/", "/message:send", "/agents/echo/tasks"] {
        let answer = preflight("https://app.example", path).await;
        assert_eq!(answer.status, 204);
        let origin = answer.header("access-control-allow-origin");
        assert_eq!(origin, "https://app.example");
        let allowed = answer
            .header("access-control-allow-headers")
            .to_ascii_lowercase();
        for header in asked.split(", ") {
            assert!(allowed.contains(header), "{header} in {allowed}");
        }
        for method in ["GET", "POST", "DELETE"] {
            let methods = answer.header("access-control-allow-methods");
            assert!(methods.contains(method), "{methods}");
        }
        assert_eq!(answer.header("access-control-max-age"), "86400");
        assert_eq!(answer.header("vary"), "Origin");
        let other = preflight("https://evil.example", path).await;
        assert_eq!(other.header("access-control-allow-origin"), "");
        assert_eq!(other.header("access-control-allow-methods"), "");
    }
    let origin = [("Origin", "https://app.example"), JSON[0]];
    let body = rpc("SendMessage", &say("hi")).to_string();
    let answer = served.ask("POST", "/", &origin, body).await;
    assert_eq!(
        answer.header("access-control-allow-origin"),
        "https://app.example"
    );
    let exposed = answer.header("access-control-expose-headers");
    for header in ["A2A-Extensions", "WWW-Authenticate", "Retry-After"] {
        assert!(exposed.contains(header), "{exposed}");
    }
    let other = [("Origin", "https://evil.example")];
    let answer = served.ask("GET", "/tasks", &other, "").await;
    assert_eq!(answer.header("access-control-allow-origin"), "");
    let card = preflight("https://evil.example", "/.well-known/agent-card.json").await;
    assert_eq!(card.header("access-control-allow-origin"), "*");
}

/// LIM-01: waiting sends and the rate of one caller; RPC-08: 429 with the id.
#[tokio::test]
async fn callers_have_limits() {
    let mut setup = Setup::default();
    setup.settings.max_blocking_sends_per_caller = 1;
    let served = setup.start().await;
    let (first, ()) = tokio::join!(served.rpc("SendMessage", say("wait")), async {
        while served.fake.calls() == 0 {
            tokio::task::yield_now().await;
        }
        let second = served.rpc("SendMessage", say("hi")).await;
        assert_eq!((second.status.as_u16(), second.code()), (429, -32603));
        assert_eq!(second.json()["id"], "r1");
        assert_eq!(second.header("retry-after"), "1");
        let mut now = say("hi");
        now["configuration"] = json!({"returnImmediately": true});
        assert_eq!(served.rpc("SendMessage", now).await.status, 200);
        served.fake.release.notify_one();
    });
    assert_eq!(first.status, 200);
    assert_eq!(served.rpc("SendMessage", say("hi")).await.status, 200);

    let mut setup = Setup::default();
    setup.settings.rate_limit = Some(RateLimit {
        per_second: 0.01,
        burst: 2,
    });
    let served = setup.start().await;
    let statuses = [
        served.get("/tasks").await.status.as_u16(),
        served.get("/tasks").await.status.as_u16(),
        served.get("/tasks").await.status.as_u16(),
    ];
    assert_eq!(statuses, [200, 200, 429]);
}

/// Stopping: no new connections, requests in flight are finished, a limit ends the wait.
#[tokio::test]
async fn stopping_finishes_what_is_in_flight() {
    let served = serve().await;
    let (answer, ()) = tokio::join!(served.rpc("SendMessage", say("wait")), async {
        while served.fake.calls() == 0 {
            tokio::task::yield_now().await;
        }
        served.shutdown.cancel();
        while TcpStream::connect(served.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        served.fake.release.notify_one();
    });
    assert_eq!(answer.json()["result"]["task"]["id"], "t1");
    tokio::time::timeout(PATIENCE, served.running)
        .await
        .unwrap()
        .unwrap();

    let mut setup = Setup::default();
    setup.settings.drain_timeout = Duration::from_millis(50);
    let served = setup.start().await;
    let body = rpc("SendMessage", &say("wait")).to_string();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut raw = served.raw(head + &body).await;
    while served.fake.calls() == 0 {
        tokio::task::yield_now().await;
    }
    served.shutdown.cancel();
    tokio::time::timeout(PATIENCE, served.running)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(raw.read_to_close().await, "");
}

/// A panic of the agent is an internal error; the next request is served (RPC-06, ERR-06).
#[tokio::test]
async fn a_panic_of_the_agent_is_an_internal_error() {
    let served = serve().await;
    for text in ["panic", "internal"] {
        let answer = served.rpc("SendMessage", say(text)).await;
        assert_eq!((answer.status.as_u16(), answer.code()), (200, -32603));
        assert!(!answer.text().contains("hunter2"), "{}", answer.text());
        let answer = served.post("/message:send", &say(text)).await;
        assert_eq!(answer.status, 500);
        assert!(!answer.text().contains("hunter2"), "{}", answer.text());
    }
    assert_eq!(served.rpc("SendMessage", say("hi")).await.code(), 0);
}

/// HTTP/2 by prior knowledge: many requests on one connection.
#[tokio::test]
async fn http2_is_spoken_by_prior_knowledge() {
    let served = serve().await;
    let client = h2(served.address).await;
    let requests = (0..50).map(|n| {
        let mut client = client.clone();
        let address = served.address;
        async move {
            let request = Request::get(format!("http://{address}/tasks/t1?historyLength={n}"));
            let reply = client.send_request(request.body(Full::default()).unwrap());
            reply.await.unwrap().status()
        }
    });
    let statuses = futures_util::future::join_all(requests).await;
    assert!(statuses.iter().all(|status| *status == 200));
    let host = Request::get(format!(
        "http://{}/.well-known/agent-card.json",
        served.address
    ));
    let mut client = client;
    let reply = client
        .send_request(host.body(Full::default()).unwrap())
        .await
        .unwrap();
    let body = reply.into_body().collect().await.unwrap().to_bytes();
    let card: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let url = format!("http://{}/agents/echo", served.address);
    assert_eq!(card["supportedInterfaces"][0]["url"], url.as_str());
}

/// Connections are spread over workers and served there; stopping ends them.
#[tokio::test]
async fn workers_share_the_connections() {
    let (server, fake) = Setup::default().build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let workers = Workers::start(2).unwrap();
    assert_eq!(workers.handles().count(), 2);
    let clients = async {
        let one = || async {
            let mut client = h2(address).await;
            let request = Request::get(format!("http://{address}/tasks/t1"));
            let reply = client.send_request(request.body(Full::default()).unwrap());
            assert_eq!(reply.await.unwrap().status(), 200);
        };
        futures_util::future::join_all((0..8).map(|_| one())).await;
        shutdown.cancel();
    };
    let run = server.run_on_workers(listener, &workers, shutdown.clone());
    let (ran, ()) = tokio::join!(run, clients);
    ran.unwrap();
    assert_eq!(fake.calls(), 8);
    tokio::task::spawn_blocking(|| workers.stop())
        .await
        .unwrap();
}

/// The server is a tower service, to be mounted in another program.
#[tokio::test]
async fn it_can_be_mounted() {
    let (mut server, _fake) = Setup::default().build();
    let request = Request::get("/tasks/t1")
        .body(Full::<Bytes>::default())
        .unwrap();
    let reply = tower_service::Service::call(&mut server, request)
        .await
        .unwrap();
    assert_eq!(reply.status(), 200);
    fn is_shareable<T: Clone + Send + Sync + 'static>(_: &T) {}
    is_shareable::<Server>(&server);
}

/// R14: a server that is about to go answers, lets go of connections, and begins no stream.
#[tokio::test]
async fn a_stopping_server_answers_and_begins_no_stream() {
    let served = serve().await;
    let mut kept = served.raw("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").await;
    kept.until("\"ok\"}").await;
    assert!(!kept.text().contains("connection: close"));
    served.server.end_streams();
    assert_eq!(served.get("/readyz").await.status, 503);
    assert_eq!(served.rpc("GetTask", json!({"id": "t1"})).await.status, 200);
    let calls = served.fake.calls();
    let subscribe = json!({"id": "t1"});
    for refused in [
        served.rpc("SubscribeToTask", subscribe.clone()).await,
        served.rpc("SendStreamingMessage", say("hi")).await,
        served.post("/tasks/t1:subscribe", &json!({})).await,
        served.post("/message:stream", &say("hi")).await,
    ] {
        assert_eq!(refused.status, 503, "{}", refused.text());
        assert_eq!(refused.header("retry-after"), "1");
    }
    assert_eq!(served.fake.calls(), calls, "nothing was begun");
    // The connection from before gets its answer, and its end with it.
    let again = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
    tokio::io::AsyncWriteExt::write_all(&mut kept.stream, again)
        .await
        .unwrap();
    let text = kept.read_to_close().await;
    assert_eq!(text.matches("\"ok\"}").count(), 2, "{text}");
    assert!(text.contains("connection: close"), "{text}");
}
