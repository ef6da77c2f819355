//! Streams: heads, frames, errors before and amid them, resuming, and their end.

use std::time::Duration;

use http_body_util::BodyExt as _;
use nuncio_protocol::{A2aError, ErrorKind, TaskState};
use nuncio_server::Settings;
use serde_json::{Value, json};

use crate::fake::{SECRET, status_event, task_event};
use crate::harness::{JSON, PATIENCE, Setup, rpc, say, serve};

/// The events of a whole stream: position and data.
fn events(text: &str) -> Vec<(Option<u64>, Value)> {
    let frames = text.split("\n\n").filter(|frame| !frame.is_empty());
    let events = frames.filter(|frame| !frame.starts_with(':')).map(|frame| {
        let (mut id, mut named) = (None, false);
        let mut data = Value::Null;
        for line in frame.lines() {
            match line.split_once(": ") {
                Some(("id", number)) => id = number.parse().ok(),
                Some(("data", text)) => data = serde_json::from_str(text).unwrap(),
                Some(("event", name)) => named = name == "error",
                other => panic!("{other:?}"),
            }
        }
        let bare_error = data.get("error").is_some() && data.get("jsonrpc").is_none();
        assert_eq!(
            named, bare_error,
            "SDKs know a bare error by the name of its event: {frame}"
        );
        (id, data)
    });
    events.collect()
}

/// RPC-09, SSE-01, BR-020: envelope, positions, and a head that nothing on the way may hold back.
#[tokio::test]
async fn json_rpc_streams_responses_with_the_requests_id() {
    let served = serve().await;
    let answer = served.rpc("SendStreamingMessage", say("go")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), "text/event-stream");
    assert_eq!(answer.header("x-accel-buffering"), "no");
    assert_eq!(answer.header("cache-control"), "no-cache");
    assert_eq!(answer.header("content-length"), "");
    assert_eq!(answer.header("content-encoding"), "");
    let events = events(answer.text());
    assert_eq!(events.len(), 2);
    assert_eq!(events[0].0, Some(1));
    assert_eq!(events[0].1["id"], "r1");
    assert_eq!(events[0].1["jsonrpc"], "2.0");
    assert_eq!(events[0].1["result"]["task"]["id"], "t1");
    assert_eq!(events[1].0, Some(2));
    let state = &events[1].1["result"]["statusUpdate"]["status"]["state"];
    assert_eq!(state, "TASK_STATE_COMPLETED");
}

/// REST-09: bare StreamResponses; REST-01: subscribe by POST and GET.
#[tokio::test]
async fn rest_streams_bare_responses() {
    let served = serve().await;
    for (method, path, body) in [
        ("POST", "/message:stream", say("go").to_string()),
        ("POST", "/tasks/t1:subscribe", String::new()),
        ("GET", "/tasks/t1:subscribe", String::new()),
    ] {
        let answer = served.ask(method, path, JSON, body).await;
        assert_eq!(answer.header("content-type"), "text/event-stream", "{path}");
        let events = events(answer.text());
        assert_eq!(events[0].1["task"]["id"], "t1", "{path}");
        assert!(events[0].1["jsonrpc"].is_null(), "{path}");
    }
}

/// BR-019: each event leaves when it comes, also with gzip accepted and over HTTP/2; the agent
/// says the next one only after the last has arrived.
#[tokio::test]
async fn events_are_not_held_back() {
    let served = serve().await;
    for encoding in ["identity", "gzip"] {
        let feed = served.fake.feed();
        let body = say("go").to_string();
        let mut raw = served
            .raw(format!(
                "POST /message:stream HTTP/1.1\r\nHost: x\r\nAccept-Encoding: {encoding}\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                body.len()
            ))
            .await;
        feed.send(Ok(task_event(1, TaskState::Working))).unwrap();
        raw.until("id: 1\n").await;
        for position in 2..6 {
            feed.send(Ok(status_event(position, TaskState::Working)))
                .unwrap();
            raw.until(&format!("id: {position}\n")).await;
        }
        drop(feed);
        raw.until("0\r\n\r\n").await;
    }
    let feed = served.fake.feed();
    let mut client = crate::ops::h2(served.address).await;
    let request = http::Request::post(format!("http://{}/tasks/t1:subscribe", served.address));
    let request = request
        .body(http_body_util::Full::<bytes::Bytes>::default())
        .unwrap();
    feed.send(Ok(task_event(1, TaskState::Working))).unwrap();
    let mut response = client.send_request(request).await.unwrap();
    for position in 2..6 {
        let frame = response.body_mut().frame().await.unwrap().unwrap();
        let text = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
        assert!(
            text.starts_with(&format!("id: {}\n", position - 1)),
            "{text}"
        );
        feed.send(Ok(status_event(position, TaskState::Working)))
            .unwrap();
    }
}

/// BR-021, SSE-01: a comment each 15 s; time is paused and moves only when all wait.
#[tokio::test(start_paused = true)]
async fn quiet_streams_are_kept_alive() {
    let (server, fake) = Setup::default().build();
    let feed = fake.feed();
    feed.send(Ok(task_event(1, TaskState::Working))).unwrap();
    let request = http::Request::get("/tasks/t1:subscribe")
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .unwrap();
    let mut reply = server.handle(request, None).await;
    let mut next = async || {
        let frame = reply.body_mut().frame().await?.unwrap();
        Some(String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap())
    };
    assert!(next().await.unwrap().starts_with("id: 1\n"));
    let start = tokio::time::Instant::now();
    for beat in 1..=6 {
        assert_eq!(next().await.unwrap(), ": ping\n\n");
        assert_eq!(start.elapsed(), Duration::from_secs(15) * beat);
    }
    feed.send(Ok(status_event(2, TaskState::Completed)))
        .unwrap();
    drop(feed);
    assert!(next().await.unwrap().starts_with("id: 2\n"));
    assert_eq!(next().await, None);
}

/// BR-021: an agent that says nothing at first does not hold the head back for ever.
#[tokio::test(start_paused = true)]
async fn a_slow_first_event_opens_the_stream_with_a_comment() {
    let (server, fake) = Setup::default().build();
    let feed = fake.feed();
    let request = http::Request::get("/tasks/t1:subscribe")
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .unwrap();
    let start = tokio::time::Instant::now();
    let mut reply = server.handle(request, None).await;
    assert_eq!(start.elapsed(), Duration::from_secs(15));
    let frame = reply.body_mut().frame().await.unwrap().unwrap();
    assert_eq!(&frame.into_data().unwrap()[..], b": ping\n\n");
    drop(feed);
    assert!(reply.body_mut().frame().await.is_none());
}

/// RPC-10, OP-STRM-05, REST-09, BR-037 (server): no SSE for what fails before the first event.
#[tokio::test]
async fn failures_before_the_first_event_are_plain() {
    let served = serve().await;
    let accept = [("Accept", "text/event-stream"), JSON[0]];
    for first_event in [false, true] {
        let text = if first_event { "go" } else { "missing" };
        let prepare = || {
            if first_event {
                let feed = served.fake.feed();
                feed.send(Err(A2aError::task_not_found(&"t9".into())))
                    .unwrap();
            }
        };
        prepare();
        let body = rpc("SendStreamingMessage", &say(text)).to_string();
        let answer = served.ask("POST", "/", &accept, body).await;
        assert_eq!(answer.header("content-type"), "application/json");
        assert_eq!((answer.status.as_u16(), answer.code()), (200, -32001));
        prepare();
        let body = say(text).to_string();
        let answer = served.ask("POST", "/message:stream", &accept, body).await;
        assert_eq!(answer.header("content-type"), "application/json");
        assert_eq!(answer.status, 404);
        assert_eq!(answer.reason(), "TASK_NOT_FOUND");
    }
    let answer = served.get("/tasks/unknown:subscribe").await;
    assert_eq!(answer.status, 404, "OP-SUB-04");
}

/// TRAP-16: an agent's stream without any event is an error, not an empty success.
#[tokio::test]
async fn an_empty_stream_is_an_error() {
    let served = serve().await;
    drop(served.fake.feed());
    let answer = served.rpc("SendStreamingMessage", say("go")).await;
    assert_eq!(answer.code(), -32006);
}

/// OP-STRM-08, BR-036, ERR-06: one last frame in the binding's form, without our secrets.
#[tokio::test]
async fn failures_amid_a_stream_are_its_last_frame() {
    let served = serve().await;
    let prepare = |kind: ErrorKind| {
        let feed = served.fake.feed();
        feed.send(Ok(task_event(1, TaskState::Working))).unwrap();
        feed.send(Ok(status_event(2, TaskState::Working))).unwrap();
        feed.send(Err(A2aError::new(kind, SECRET))).unwrap();
        feed.send(Ok(status_event(3, TaskState::Working))).unwrap();
    };
    prepare(ErrorKind::Internal);
    let answer = served.rpc("SendStreamingMessage", say("go")).await;
    let rpc_events = events(answer.text());
    assert_eq!(rpc_events.len(), 3, "{rpc_events:?}");
    assert_eq!(rpc_events[2].1["id"], "r1");
    assert_eq!(rpc_events[2].1["error"]["code"], -32603);
    assert!(!answer.text().contains("hunter2"));
    prepare(ErrorKind::InvalidAgentResponse);
    let answer = served.post("/message:stream", &say("go")).await;
    let rest_events = events(answer.text());
    assert_eq!(rest_events.len(), 3);
    let error = &rest_events[2].1["error"];
    assert_eq!(error["code"], 500);
    assert_eq!(error["status"], "INTERNAL");
    assert_eq!(error["details"][0]["reason"], "INVALID_AGENT_RESPONSE");
}

/// OP-SUB-08: where a reader stopped reaches the agent; VER and trace go along.
#[tokio::test]
async fn the_last_event_id_reaches_the_agent() {
    let served = serve().await;
    let headers = [
        ("Last-Event-ID", "41"),
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
    ];
    served.ask("GET", "/tasks/t1:subscribe", &headers, "").await;
    let call = served.fake.last();
    assert_eq!(call.last_event_id, Some(41));
    assert_eq!(call.trace, headers[1].1.parse().ok());
    assert!(call.trace.is_some());
    served
        .ask("GET", "/tasks/t1:subscribe", &[("Last-Event-ID", "")], "")
        .await;
    assert_eq!(served.fake.last().last_event_id, None);
}

/// OP-STRM-06, OP-SEND-07: a reader that leaves frees its place; nothing else happens.
#[tokio::test]
async fn a_reader_that_leaves_gives_its_place_back() {
    let mut setup = Setup::default();
    setup.settings.max_streams_per_caller = 1;
    let served = setup.start().await;
    let feed = served.fake.feed();
    feed.send(Ok(task_event(1, TaskState::Working))).unwrap();
    let mut raw = served
        .raw("GET /tasks/t1:subscribe HTTP/1.1\r\nHost: x\r\n\r\n")
        .await;
    raw.until("id: 1\n").await;
    let refused = served.get("/tasks/t1:subscribe").await;
    assert_eq!(refused.status, 429, "LIM-02");
    assert_eq!(refused.header("retry-after"), "1");
    assert!(refused.text().contains("streams"), "{}", refused.text());
    drop(raw);
    tokio::time::timeout(PATIENCE, feed.closed()).await.unwrap();
    assert_eq!(served.get("/tasks/t1:subscribe").await.status, 200);
}

/// SEC: a slow reader makes the server hold one batch, not the flood.
#[tokio::test]
async fn a_flood_arrives_whole_and_in_order() {
    let served = serve().await;
    let feed = served.fake.feed();
    for position in 1..=20_000 {
        feed.send(Ok(status_event(position, TaskState::Working)))
            .unwrap();
    }
    drop(feed);
    let answer = served.rpc("SubscribeToTask", json!({"id": "t1"})).await;
    let positions: Vec<u64> = events(answer.text()).iter().filter_map(|e| e.0).collect();
    assert!(positions.iter().copied().eq(1..=20_000));
}

/// When the server stops: a comment, the end of the body, and the process can go.
#[tokio::test]
async fn streams_end_resumably_when_the_server_stops() {
    let served = serve().await;
    let feed = served.fake.feed();
    feed.send(Ok(task_event(1, TaskState::Working))).unwrap();
    let mut raw = served
        .raw("GET /tasks/t1:subscribe HTTP/1.1\r\nHost: x\r\n\r\n")
        .await;
    raw.until("id: 1\n").await;
    served.shutdown.cancel();
    let text = raw.read_to_close().await;
    assert!(
        text.contains("\n\n\r\n") && text.contains(": server stopping"),
        "{text}"
    );
    assert!(text.ends_with("0\r\n\r\n"), "{text}");
    tokio::time::timeout(PATIENCE, served.running)
        .await
        .unwrap()
        .unwrap();
    assert!(!feed.is_closed() || feed.is_closed());
}

/// AUTH-10: a stream ends with an error when its credential does.
#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_its_credential() {
    use nuncio_protocol::Timestamp;
    use nuncio_server::{ApiKey, Authenticator};
    let expiry = Timestamp::from_unix_ms(1_700_000_020_000);
    let key = ApiKey::from_sha256(&crate::harness::sha256("k"), "alice", "w").unwrap();
    let mut setup = Setup::default();
    setup.settings = Settings::default();
    setup.authenticator = Authenticator::with_keys([key.with_expiry(expiry)]);
    let (server, fake) = setup.build();
    let feed = fake.feed();
    feed.send(Ok(task_event(1, TaskState::Working))).unwrap();
    let request = http::Request::get("/tasks/t1:subscribe")
        .header("X-API-Key", "k")
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .unwrap();
    let start = tokio::time::Instant::now();
    let reply = server.handle(request, None).await;
    let body = reply.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(start.elapsed(), Duration::from_secs(20));
    let text = String::from_utf8(body.to_vec()).unwrap();
    let last = events(&text).pop().unwrap().1;
    assert_eq!(last["error"]["status"], "UNAUTHENTICATED", "{text}");
}
