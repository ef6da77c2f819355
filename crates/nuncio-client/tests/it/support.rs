//! A fake agent: a TCP listener that writes what a script says, for either binding.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use nuncio_client::{Backoff, Client, ClientBuilder, FollowPolicy, RetryPolicy};
use nuncio_egress::{Egress, EgressPolicy};
use nuncio_protocol::{
    A2aError, AgentCard, AgentInterface, Binding, Call, Event, EventStream, Ids, Message, Part,
    SendMessageRequest, StreamResponse,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const BINDINGS: [Binding; 2] = [Binding::JsonRpc, Binding::HttpJson];

/// A request as the fake agent got it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// The operation's name, whatever the binding.
    pub(crate) fn operation(&self) -> String {
        if let Some(method) = self.json()["method"].as_str() {
            return method.to_owned();
        }
        let path = self.target.split('?').next().unwrap();
        let name = match (self.method.as_str(), path) {
            (_, p) if p.ends_with("/message:send") => "SendMessage",
            (_, p) if p.ends_with("/message:stream") => "SendStreamingMessage",
            (_, p) if p.ends_with(":subscribe") => "SubscribeToTask",
            (_, p) if p.ends_with(":cancel") => "CancelTask",
            ("GET", p) if p.contains("/tasks/") => "GetTask",
            _ => "?",
        };
        name.to_owned()
    }

    /// The request of the operation, without envelope.
    pub(crate) fn params(&self) -> Value {
        let json = self.json();
        if json["method"].is_string() {
            json["params"].clone()
        } else {
            json
        }
    }

    fn rpc_id(&self) -> Option<Value> {
        let json = self.json();
        json["method"].is_string().then(|| json["id"].clone())
    }

    /// A result in the binding's envelope.
    pub(crate) fn enveloped(&self, result: &Value) -> Value {
        match self.rpc_id() {
            Some(id) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            None => result.clone(),
        }
    }

    /// An error in the binding's form, with its HTTP status.
    pub(crate) fn refused(&self, code: i64, status: u16, reason: &str) -> Answer {
        let info = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason,
            "domain": "a2a-protocol.org"}]);
        match self.rpc_id() {
            Some(id) => Answer::json(
                200,
                &json!({"jsonrpc": "2.0", "id": id,
                    "error": {"code": code, "message": "refused", "data": info}}),
            ),
            None => Answer::json(
                status,
                &json!({"error": {"code": status, "status": "X", "message": "refused", "details": info}}),
            ),
        }
    }

    pub(crate) fn ok(&self, result: &Value) -> Answer {
        Answer::json(200, &self.enveloped(result))
    }

    /// A stream of items, each with a position if the number is not 0.
    pub(crate) fn stream(&self, items: &[(u64, Value)]) -> Answer {
        let mut text = String::new();
        for (position, item) in items {
            if *position > 0 {
                text += &format!("id: {position}\n");
            }
            text += &format!("data: {}\n\n", self.enveloped(item));
        }
        Answer::sse(&text)
    }
}

/// What the fake agent writes, step by step; then it closes the connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer(Vec<Step>);

#[derive(Debug, Clone)]
enum Step {
    Write(Vec<u8>),
    /// Time stands still from now on, so that only time limits are left to happen.
    StopClock,
    /// A wait in stopped time.
    Wait(Duration),
    Hang,
}

impl Answer {
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self(vec![Step::Write(bytes.into())])
    }

    pub(crate) fn with_type(status: u16, content_type: &str, body: &str) -> Self {
        Self::with_headers(status, &format!("content-type: {content_type}\r\n"), body)
    }

    pub(crate) fn with_headers(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::raw(format!(
            "HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        ))
    }

    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::with_type(status, "application/json", &body.to_string())
    }

    /// An event stream that ends with the connection.
    pub(crate) fn sse(text: &str) -> Self {
        Self::raw(format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{text}"
        ))
    }

    pub(crate) fn hang() -> Self {
        Self(vec![Step::Hang])
    }

    pub(crate) fn then_hang(mut self) -> Self {
        self.0.push(Step::Hang);
        self
    }

    pub(crate) fn then_stop_clock(mut self) -> Self {
        self.0.push(Step::StopClock);
        self
    }

    /// Waits in stopped time, then answers.
    pub(crate) fn after(wait: Duration, answer: Self) -> Self {
        Self::default().and_after(wait, answer)
    }

    /// The same answer, then a wait in stopped time, then another.
    pub(crate) fn and_after(mut self, wait: Duration, next: Self) -> Self {
        self.0.push(Step::Wait(wait));
        self.0.extend(next.0);
        self
    }
}

/// A fake agent on a free port.
pub(crate) struct Fake {
    pub(crate) base: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Fake {
    pub(crate) async fn start(script: impl FnMut(&Request) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (seen, script) = (requests.clone(), Arc::new(Mutex::new(script)));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (seen, script) = (seen.clone(), script.clone());
                tokio::spawn(async move {
                    let mut socket = socket;
                    let Some(request) = read(&mut socket).await else {
                        return;
                    };
                    let answer = (script.lock().unwrap())(&request);
                    seen.lock().unwrap().push(request);
                    write(socket, answer).await;
                });
            }
        });
        Self { base, requests }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn operations(&self) -> Vec<String> {
        self.requests().iter().map(Request::operation).collect()
    }

    /// A card with one interface at this fake.
    pub(crate) fn card(&self, binding: Binding, streaming: bool) -> AgentCard {
        let mut card = AgentCard::default();
        card.name = "fake".to_owned();
        card.capabilities.streaming = Some(streaming);
        let interface = AgentInterface::new(format!("{}/a2a", self.base), binding);
        card.supported_interfaces.push(interface);
        card
    }

    pub(crate) fn client(&self, binding: Binding, streaming: bool) -> Client {
        builder().build(self.card(binding, streaming)).unwrap()
    }
}

async fn read(socket: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break end;
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let first: Vec<&str> = lines.next()?.split(' ').collect();
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = bytes[end + 4..].to_vec();
    while body.len() < length {
        if socket.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Request {
        method: first[0].to_owned(),
        target: first[1].to_owned(),
        headers,
        body: String::from_utf8(body).unwrap(),
    })
}

async fn write(mut socket: TcpStream, answer: Answer) {
    for step in answer.0 {
        match step {
            Step::Write(bytes) => {
                let _ = socket.write_all(&bytes).await;
            }
            Step::StopClock => tokio::time::pause(),
            Step::Wait(wait) => {
                tokio::time::pause();
                tokio::time::sleep(wait).await;
                tokio::time::resume();
            }
            Step::Hang => std::future::pending().await,
        }
    }
}

/// One per test: reading the system's certificates takes its time.
pub(crate) fn egress() -> Egress {
    thread_local! {
        static EGRESS: Egress = Egress::new(EgressPolicy::open()).unwrap();
    }
    EGRESS.with(Clone::clone)
}

/// A builder whose delays are too short to notice.
pub(crate) fn builder() -> ClientBuilder {
    let quick = Backoff {
        first: Duration::from_micros(100),
        factor: 2.0,
        cap: Duration::from_millis(1),
    };
    let retry = RetryPolicy {
        backoff: quick,
        ..RetryPolicy::default()
    };
    let follow = FollowPolicy {
        reconnect: quick,
        poll: quick,
        linger: Duration::from_millis(20),
        ..FollowPolicy::default()
    };
    ClientBuilder::new(egress()).retry(retry).follow(follow)
}

/// Ids that count.
#[derive(Debug, Default)]
pub(crate) struct Numbered(AtomicU64);

impl Ids for Numbered {
    fn next(&self) -> String {
        format!("m{}", self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

pub(crate) fn hello() -> SendMessageRequest {
    SendMessageRequest::new(Message::user("m1", vec![Part::text("hello")]))
}

pub(crate) fn call() -> Call {
    Call::client()
}

pub(crate) fn task(state: &str, artifacts: &Value) -> Value {
    json!({"id": "t1", "contextId": "c1", "artifacts": artifacts,
        "status": {"state": format!("TASK_STATE_{state}"), "timestamp": "2026-01-01T00:00:00Z"}})
}

pub(crate) fn task_item(state: &str) -> Value {
    json!({"task": task(state, &json!([]))})
}

pub(crate) fn status(state: &str) -> Value {
    json!({"statusUpdate": {"taskId": "t1", "contextId": "c1",
        "status": {"state": format!("TASK_STATE_{state}"), "timestamp": "2026-01-01T00:00:01Z"}}})
}

pub(crate) fn piece(text: &str, append: bool) -> Value {
    json!({"artifactUpdate": {"taskId": "t1", "contextId": "c1", "append": append,
        "artifact": {"artifactId": "a1", "parts": [{"text": text}]}}})
}

pub(crate) async fn collect(mut stream: EventStream) -> (Vec<Event>, Option<A2aError>) {
    let mut events = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(event) => events.push(event),
            Err(error) => {
                assert!(stream.next().await.is_none(), "an error is the last item");
                return (events, Some(error));
            }
        }
    }
    (events, None)
}

/// The kinds of items, for comparing shapes.
pub(crate) fn shapes(events: &[Event]) -> Vec<&'static str> {
    events
        .iter()
        .map(|event| match event.response() {
            StreamResponse::Task(_) => "task",
            StreamResponse::Message(_) => "message",
            StreamResponse::StatusUpdate(_) => "status",
            StreamResponse::ArtifactUpdate(_) => "artifact",
            _ => "?",
        })
        .collect()
}
