//! An agent that answers whatever a test wants, to see what the client makes of it.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::tls;

/// One request as it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    /// Empty if it is no text.
    pub(crate) body: String,
    pub(crate) bytes: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// What to answer: status line, content type, body.
pub(crate) type Answer = (&'static str, &'static str, String);

/// A server on a thread; ends with the test.
pub(crate) struct Fake {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Fake {
    /// Serves a card of its own, and answers every POST with `answer`.
    pub(crate) fn answering(answer: impl Fn(&Request) -> Answer + Send + 'static) -> Self {
        Self::with_card(json!({}), answer)
    }

    /// The same with further members of the card.
    pub(crate) fn with_card(
        extra: Value,
        answer: impl Fn(&Request) -> Answer + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut card = card(&url);
        for (name, value) in extra.as_object().unwrap() {
            card[name] = value.clone();
        }
        let card = card.to_string();
        Self::serve(listener, url, plain, move |request| {
            card_or(&card, request, &answer)
        })
    }

    /// The same behind TLS, with a certificate that nobody trusts.
    pub(crate) fn behind_tls(answer: impl Fn(&Request) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let card = card(&url).to_string();
        let config = tls::self_signed();
        let open = move |stream| Some(Box::new(tls::accept(&config, stream)?) as Box<dyn Wire>);
        Self::serve(listener, url, open, move |request| {
            card_or(&card, request, &answer)
        })
    }

    /// Answers everything with `answer`, the card too.
    pub(crate) fn bare(answer: impl Fn(&Request) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        Self::serve(listener, url, plain, answer)
    }

    fn serve(
        listener: TcpListener,
        url: String,
        open: impl Fn(TcpStream) -> Option<Box<dyn Wire>> + Send + 'static,
        answer: impl Fn(&Request) -> Answer + Send + 'static,
    ) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Some(mut stream) = stream.ok().and_then(&open) else {
                    continue;
                };
                let Some(request) = read(&mut stream) else {
                    continue;
                };
                let (status, kind, body) = answer(&request);
                seen.lock().unwrap().push(request);
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
            }
        });
        Self { url, requests }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

/// A connection, with TLS or without.
trait Wire: Read + Write {}

impl<T: Read + Write> Wire for T {}

fn plain(stream: TcpStream) -> Option<Box<dyn Wire>> {
    Some(Box::new(stream))
}

fn card(url: &str) -> Value {
    json!({
        "name": "Fake", "description": "d", "version": "1",
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "capabilities": {"streaming": true},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "s", "description": "s", "tags": ["s"]}],
    })
}

fn card_or(card: &str, request: &Request, answer: impl Fn(&Request) -> Answer) -> Answer {
    let of_card = "GET /.well-known/agent-card.json ";
    if request.line.starts_with(of_card) {
        ("200 OK", "application/json", card.to_owned())
    } else {
        answer(request)
    }
}

fn read(stream: &mut impl Read) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut request = Request::default();
    reader.read_line(&mut request.line).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        request
            .headers
            .push((name.to_owned(), value.trim().to_owned()));
    }
    let length: usize = request
        .header("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    request.body = String::from_utf8(body.clone()).unwrap_or_default();
    request.bytes = body;
    Some(request)
}

/// An SSE body of these JSON-RPC results.
pub(crate) fn events(results: &[Value]) -> String {
    let event = |result| {
        format!(
            "data: {}\n\n",
            json!({"jsonrpc": "2.0", "id": "1", "result": result})
        )
    };
    results.iter().map(event).collect()
}

/// A task that has ended.
pub(crate) fn done() -> Value {
    json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}})
}

/// Answers every stream call with a task that has ended.
pub(crate) fn finished(_: &Request) -> Answer {
    ("200 OK", "text/event-stream", events(&[done()]))
}
