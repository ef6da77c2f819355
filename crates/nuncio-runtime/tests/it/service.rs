//! A service on a free port of this machine that answers what a test says.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use nuncio_egress::{Egress, EgressPolicy};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use url::Url;

/// What came in.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The method and the path.
    pub(crate) line: String,
    /// Names in lower case; several lines of one name are joined by `|`.
    pub(crate) headers: BTreeMap<String, String>,
    /// Null if there is none.
    pub(crate) body: Value,
}

/// What goes out, byte for byte; then the connection ends.
#[derive(Clone, Debug)]
pub(crate) enum Sent {
    Bytes(String),
    /// The connection stays open until the other side closes it.
    Held(String),
    /// Once there is leave for it.
    Later(Arc<Semaphore>, String),
}

impl Sent {
    pub(crate) fn status(status: &str) -> Self {
        Self::Bytes(format!(
            "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        ))
    }

    pub(crate) fn json(value: &Value) -> Self {
        Self::Bytes(format!("{}{value}", head("application/json")))
    }

    pub(crate) fn stream(text: &str) -> Self {
        Self::Bytes(format!("{}{text}", head("text/event-stream")))
    }

    pub(crate) fn held(text: &str) -> Self {
        Self::Held(format!("{}{text}", head("text/event-stream")))
    }
}

pub(crate) fn head(kind: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n")
}

#[derive(Default)]
struct Shared {
    asked: Mutex<Vec<Asked>>,
    answers: Mutex<VecDeque<Sent>>,
    closed: Notify,
}

/// The service; the last answer is given again and again.
pub(crate) struct Service {
    pub(crate) url: Url,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

impl Service {
    pub(crate) async fn answering(answers: impl IntoIterator<Item = Sent>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared::default());
        shared.answers.lock().extend(answers);
        let serving = tokio::spawn({
            let shared = Arc::clone(&shared);
            async move {
                loop {
                    let (socket, _) = listener.accept().await.unwrap();
                    tokio::spawn(serve(socket, Arc::clone(&shared)));
                }
            }
        });
        Self {
            url: format!("http://127.0.0.1:{port}/ask").parse().unwrap(),
            shared,
            serving,
        }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().clone()
    }

    /// Waits until the other side has closed a connection that was held.
    pub(crate) async fn closed(&self) {
        self.shared.closed.notified().await;
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A way out that reaches this machine.
pub(crate) fn egress() -> Egress {
    Egress::new(EgressPolicy::default().allowing("127.0.0.0/8".parse().unwrap())).unwrap()
}

async fn serve(socket: TcpStream, shared: Arc<Shared>) {
    let mut stream = BufReader::new(socket);
    let mut headers = BTreeMap::<String, String>::new();
    let mut asked = String::new();
    stream.read_line(&mut asked).await.unwrap();
    let mut line = String::new();
    loop {
        line.clear();
        stream.read_line(&mut line).await.unwrap();
        let Some((name, value)) = line.trim().split_once(": ") else {
            break;
        };
        headers
            .entry(name.to_ascii_lowercase())
            .and_modify(|known| *known = format!("{known}|{value}"))
            .or_insert_with(|| value.to_owned());
    }
    let length = headers.get("content-length").map_or("0", String::as_str);
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    let body = match body.is_empty() {
        true => Value::Null,
        false => serde_json::from_slice(&body).unwrap(),
    };
    let line = asked.trim_end_matches(" HTTP/1.1\r\n").to_owned();
    shared.asked.lock().push(Asked {
        line,
        headers,
        body,
    });
    let answer = {
        let mut answers = shared.answers.lock();
        match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop_front().unwrap(),
        }
    };
    let answer = match answer {
        Sent::Later(leave, bytes) => {
            leave.acquire().await.unwrap().forget();
            Sent::Bytes(bytes)
        }
        answer => answer,
    };
    match answer {
        Sent::Later(..) => {}
        Sent::Bytes(bytes) => {
            let _ = stream.write_all(bytes.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
        Sent::Held(bytes) => {
            stream.write_all(bytes.as_bytes()).await.unwrap();
            let _ = stream.read(&mut [0]).await;
            shared.closed.notify_one();
        }
    }
}
