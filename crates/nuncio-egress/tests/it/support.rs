//! A listener that counts, and a resolver that says what it is told.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use nuncio_egress::{Egress, EgressError, EgressPolicy, EgressRequest, EgressResponse, Resolve};
use nuncio_egress::{Resolving, Rule};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use url::Url;

/// A server on a free port of the machine that answers everything with the same bytes.
pub(crate) struct Canary {
    pub(crate) port: u16,
    pub(crate) connections: Arc<AtomicUsize>,
    pub(crate) heads: Arc<Mutex<Vec<String>>>,
}

impl Canary {
    pub(crate) async fn start(answer: impl Into<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let canary = Self {
            port: listener.local_addr().unwrap().port(),
            connections: Arc::default(),
            heads: Arc::default(),
        };
        let (connections, heads) = (canary.connections.clone(), canary.heads.clone());
        let answer = answer.into();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let (answer, heads) = (answer.clone(), heads.clone());
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.windows(4).any(|w| w == b"\r\n\r\n") {
                        match socket.read_buf(&mut head).await {
                            Ok(n) if n > 0 => {}
                            _ => return,
                        }
                    }
                    heads.lock().unwrap().push(String::from_utf8(head).unwrap());
                    let _ = socket.write_all(&answer).await;
                });
            }
        });
        canary
    }

    pub(crate) fn hits(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

/// Answers by name; a name with several lists gives them in turn, the last one for ever.
#[derive(Debug, Default)]
pub(crate) struct Script {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    pub(crate) asked: AtomicUsize,
}

impl Script {
    pub(crate) fn with(self, name: &str, turns: &[&[&str]]) -> Self {
        let turns = turns
            .iter()
            .map(|turn| turn.iter().map(|ip| ip.parse().unwrap()).collect())
            .collect();
        self.answers.lock().unwrap().insert(name.to_owned(), turns);
        self
    }

    pub(crate) fn set(&self, name: &str, turns: &[&[&str]]) {
        let script = Self::default().with(name, turns);
        let answers = script.answers.into_inner().unwrap();
        self.answers.lock().unwrap().extend(answers);
    }
}

impl Resolve for Script {
    fn resolve(&self, host: &str) -> Resolving {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        let answer = match answers.get_mut(host) {
            Some(turns) if turns.len() > 1 => Ok(turns.remove(0)),
            Some(turns) => Ok(turns[0].clone()),
            None => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        Box::pin(async move { answer })
    }
}

pub(crate) fn egress(policy: EgressPolicy, script: Script) -> Egress {
    Egress::with_resolver(policy, Arc::new(script)).unwrap()
}

pub(crate) async fn get(egress: &Egress, url: &str) -> Result<EgressResponse, EgressError> {
    egress
        .send(EgressRequest::get(Url::parse(url).unwrap()))
        .await
}

pub(crate) fn rule<T: std::fmt::Debug>(result: Result<T, EgressError>) -> Rule {
    match result.unwrap_err() {
        EgressError::Refused(refusal) => refusal.rule,
        other => panic!("refused was expected, not {other:?}"),
    }
}
