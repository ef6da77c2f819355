//! A server on a real socket, and a small client for it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use nuncio_protocol::{AgentCard, AgentSkill};
use nuncio_server::{Authenticator, Endpoint, Server, Settings, Switchboard};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::fake::{CountedIds, Fake, SharedFake, StoppedClock};

/// No test waits longer than this for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// What is served, before it is served.
pub(crate) struct Setup {
    pub(crate) settings: Settings,
    pub(crate) authenticator: Authenticator,
    pub(crate) fake: Fake,
    pub(crate) card: AgentCard,
    pub(crate) shape: fn(Endpoint) -> Endpoint,
}

/// A card with everything on, of an agent that takes text, JSON and images.
pub(crate) fn card() -> AgentCard {
    let mut card = AgentCard::default();
    card.name = "Echo".to_owned();
    card.description = "Says it again.".to_owned();
    card.version = "1.2.3".to_owned();
    card.capabilities.streaming = Some(true);
    card.capabilities.push_notifications = Some(true);
    card.capabilities.extended_agent_card = Some(true);
    card.default_input_modes = vec!["text/plain".to_owned(), "application/json".to_owned()];
    card.default_output_modes = vec!["text/plain".to_owned()];
    let mut skill = AgentSkill::default();
    skill.id = "echo".to_owned();
    skill.name = "Echo".to_owned();
    skill.description = "Says it again.".to_owned();
    skill.tags = vec!["echo".to_owned()];
    skill.input_modes = vec!["image/*".to_owned()];
    card.skills = vec![skill];
    card
}

pub(crate) fn sha256(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            authenticator: Authenticator::anonymous(),
            fake: Fake::default(),
            card: card(),
            shape: |endpoint| endpoint,
        }
    }
}

impl Setup {
    pub(crate) fn build(self) -> (Server, SharedFake) {
        let fake = Arc::new(self.fake);
        let switchboard = Switchboard::new();
        let endpoint = Endpoint::new("echo", self.card, fake.clone());
        switchboard.insert((self.shape)(endpoint)).unwrap();
        switchboard.set_default(Some("echo".into()));
        let clock = Arc::new(StoppedClock);
        let server = Server::new(
            self.settings,
            self.authenticator,
            Arc::new(switchboard),
            clock,
            Arc::new(CountedIds::default()),
        );
        (server, fake)
    }

    pub(crate) async fn start(self) -> Served {
        let (server, fake) = self.build();
        Served::start(server, fake).await
    }
}

/// A running server.
pub(crate) struct Served {
    pub(crate) server: Server,
    pub(crate) fake: SharedFake,
    pub(crate) address: SocketAddr,
    pub(crate) shutdown: CancellationToken,
    pub(crate) running: tokio::task::JoinHandle<()>,
}

pub(crate) async fn serve() -> Served {
    Setup::default().start().await
}

/// A whole reply.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {:?}", self.body))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }

    /// JSON-RPC code, 0 for a result.
    pub(crate) fn code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().unwrap_or_default()
    }

    /// The reason in `ErrorInfo`, of either binding.
    pub(crate) fn reason(&self) -> String {
        let body = self.json();
        let details = &body["error"]["data"];
        let details = if details.is_null() {
            &body["error"]["details"]
        } else {
            details
        };
        details[0]["reason"].as_str().unwrap_or_default().to_owned()
    }

    /// The wrong fields, of either binding.
    pub(crate) fn fields(&self) -> Vec<String> {
        let body = self.json();
        let details = &body["error"]["data"];
        let details = if details.is_null() {
            &body["error"]["details"]
        } else {
            details
        };
        let details = details.as_array().cloned().unwrap_or_default();
        let violations = details.iter().flat_map(|d| d["fieldViolations"].as_array());
        let fields = violations
            .flatten()
            .map(|v| v["field"].as_str().unwrap().to_owned());
        fields.collect()
    }
}

pub(crate) type Headers<'a> = &'a [(&'a str, &'a str)];

impl Served {
    pub(crate) async fn start(server: Server, fake: SharedFake) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let running = server.clone();
        let until = shutdown.clone();
        let running = tokio::spawn(async move { running.run(listener, until).await.unwrap() });
        Self {
            server,
            fake,
            address,
            shutdown,
            running,
        }
    }

    /// Sends one request over HTTP/1.1 and gives the response with its body unread.
    pub(crate) async fn open(
        &self,
        method: &str,
        path: &str,
        headers: Headers<'_>,
        body: impl Into<Bytes>,
    ) -> http::Response<hyper::body::Incoming> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let io = TokioIo::new(stream);
        let (mut client, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path);
        if !headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("host"))
        {
            request = request.header("Host", self.address.to_string());
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let sent = client.send_request(request);
        tokio::time::timeout(PATIENCE, sent).await.unwrap().unwrap()
    }

    /// Sends one request and reads its answer to the end.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: Headers<'_>,
        body: impl Into<Bytes>,
    ) -> Answer {
        let response = self.open(method, path, headers, body).await;
        let (parts, body) = response.into_parts();
        let body = tokio::time::timeout(PATIENCE, body.collect())
            .await
            .unwrap();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: body.unwrap().to_bytes(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, JSON, body.to_string()).await
    }

    /// One JSON-RPC call.
    pub(crate) async fn rpc(&self, method: &str, params: Value) -> Answer {
        self.post("/", &rpc(method, &params)).await
    }

    /// Writes bytes to a fresh connection.
    pub(crate) async fn raw(&self, bytes: impl AsRef<[u8]>) -> Raw {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes.as_ref()).await.unwrap();
        Raw {
            stream,
            read: Vec::new(),
        }
    }
}

/// A connection read as bytes.
pub(crate) struct Raw {
    pub(crate) stream: TcpStream,
    pub(crate) read: Vec<u8>,
}

impl Raw {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.read).into_owned()
    }

    /// Reads until the text has come, or panics.
    pub(crate) async fn until(&mut self, text: &str) {
        let found = tokio::time::timeout(PATIENCE, async {
            while !self.text().contains(text) {
                let mut chunk = [0; 4096];
                let count = self.stream.read(&mut chunk).await.unwrap();
                assert!(count > 0, "closed before {text:?}: {}", self.text());
                self.read.extend_from_slice(&chunk[..count]);
            }
        });
        if found.await.is_err() {
            panic!("no {text:?} in time: {}", self.text());
        }
    }

    /// Reads until the peer closes.
    pub(crate) async fn read_to_close(&mut self) -> String {
        let read = self.stream.read_to_end(&mut self.read);
        let _ = tokio::time::timeout(PATIENCE, read)
            .await
            .expect("closed in time");
        self.text()
    }
}

pub(crate) const JSON: Headers<'static> = &[("Content-Type", "application/json")];

pub(crate) fn rpc(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": "r1", "method": method, "params": params})
}

/// A message that says `text`.
pub(crate) fn say(text: &str) -> Value {
    json!({"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}]}})
}
