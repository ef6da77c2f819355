//! A receiver of webhooks on a free port of this machine.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A call that came in.
#[derive(Clone, Debug)]
pub struct Notified {
    /// The path that was called.
    pub path: String,
    /// The headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Value,
    /// The body to the byte.
    pub raw: Vec<u8>,
    /// When it came.
    pub at: Instant,
}

impl Notified {
    /// A header's value; empty if it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// What a receiver does with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Answers with this status.
    Status(u16),
    /// Answers with this status and `Retry-After`.
    RetryAfter(u16, String),
    /// Says nothing, for ever.
    Hang,
    /// Answers with this status, and with a body that never ends.
    Endless(u16),
    /// Answers with something that is not HTTP.
    Garbage,
}

/// A receiver that answers as told, and keeps what it is told.
pub struct Receiver {
    port: u16,
    calls: Arc<Calls>,
    serving: JoinHandle<()>,
}

#[derive(Default)]
struct Calls {
    list: Mutex<Vec<Notified>>,
    came: Notify,
}

type Judge = dyn Fn(usize, &Notified) -> Answer + Send + Sync;

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl Receiver {
    /// A receiver that takes everything.
    pub async fn start() -> Self {
        Self::answering(|_, _| Answer::Status(200)).await
    }

    /// A receiver that decides by the number of the call, from 0, and by the call.
    pub async fn answering(
        judge: impl Fn(usize, &Notified) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (calls, judge): (Arc<Calls>, Arc<Judge>) = (Arc::default(), Arc::new(judge));
        let kept = Arc::clone(&calls);
        let serving = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (calls, judge) = (Arc::clone(&kept), Arc::clone(&judge));
                tokio::spawn(async move { calls.take(socket, judge.as_ref()).await });
            }
        });
        Self {
            port,
            calls,
            serving,
        }
    }

    /// An address here.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// What has come so far.
    pub fn calls(&self) -> Vec<Notified> {
        self.calls.list.lock().clone()
    }

    /// Forgets what has come so far.
    pub fn forget(&self) {
        self.calls.list.lock().clear();
    }

    /// Waits until what has come is as wanted, and gives it.
    ///
    /// # Panics
    /// If it is not so within 20 seconds.
    pub async fn until(&self, wanted: impl Fn(&[Notified]) -> bool) -> Vec<Notified> {
        let waited = tokio::time::timeout(Duration::from_secs(20), async {
            loop {
                let came = self.calls.came.notified();
                tokio::pin!(came);
                came.as_mut().enable();
                let calls = self.calls();
                if wanted(&calls) {
                    return calls;
                }
                came.await;
            }
        });
        match waited.await {
            Ok(calls) => calls,
            Err(_elapsed) => panic!("the calls are not as wanted: {:#?}", self.calls()),
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Calls {
    async fn take(&self, socket: TcpStream, judge: &Judge) {
        let mut socket = BufReader::new(socket);
        let Some(call) = read(&mut socket).await else {
            return;
        };
        let answer = {
            let mut list = self.list.lock();
            let answer = judge(list.len(), &call);
            list.push(call);
            answer
        };
        self.came.notify_waiters();
        let (status, more) = match answer {
            Answer::Status(status) => (status, String::new()),
            Answer::RetryAfter(status, after) => (status, format!("retry-after: {after}\r\n")),
            Answer::Hang => return std::future::pending().await,
            Answer::Garbage => {
                let _ = socket.write_all(b"\x15\x03\x01 nonsense\r\n\r\n").await;
                return;
            }
            Answer::Endless(status) => return endless(socket, status).await,
        };
        let head =
            format!("HTTP/1.1 {status} x\r\n{more}content-length: 0\r\nconnection: close\r\n\r\n");
        let _ = socket.write_all(head.as_bytes()).await;
    }
}

/// A byte now and then, until the other side has enough.
async fn endless(mut socket: BufReader<TcpStream>, status: u16) {
    let head = format!("HTTP/1.1 {status} x\r\ncontent-length: 1000000\r\n\r\n");
    let mut piece = head.as_bytes();
    while socket.write_all(piece).await.is_ok() {
        piece = b".";
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn read(socket: &mut BufReader<TcpStream>) -> Option<Notified> {
    let mut line = String::new();
    socket.read_line(&mut line).await.ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        socket.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length")?.parse().ok()?;
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await.ok()?;
    Some(Notified {
        path,
        headers,
        body: serde_json::from_slice(&body).ok()?,
        raw: body,
        at: Instant::now(),
    })
}
