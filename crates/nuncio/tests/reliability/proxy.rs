//! A plain round-robin in front of servers, such as a load balancer without health checks.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

/// Hands each connection to the next server, and to the one after if that refuses it.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    connections: Arc<AtomicU64>,
}

impl Proxy {
    /// Listens from now on; with `lives`, a connection is cut after a time in this range of
    /// milliseconds.
    pub(crate) async fn start(servers: Vec<SocketAddr>, lives: Option<Range<u64>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicU64::new(0));
        let made = Arc::clone(&connections);
        tokio::spawn(async move {
            let servers: Arc<[SocketAddr]> = servers.into();
            let next = Arc::new(AtomicUsize::new(0));
            while let Ok((client, _)) = listener.accept().await {
                let number = made.fetch_add(1, Ordering::Relaxed);
                let life = lives.clone().map(|lives| life(&lives, number));
                tokio::spawn(pass_on(
                    client,
                    Arc::clone(&servers),
                    Arc::clone(&next),
                    life,
                ));
            }
        });
        Self {
            address,
            connections,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many connections it has taken.
    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Spread over the range, and the same in every run.
fn life(lives: &Range<u64>, number: u64) -> Duration {
    let spread = number.wrapping_mul(2_654_435_761) >> 7;
    Duration::from_millis(lives.start + spread % (lives.end - lives.start))
}

async fn pass_on(
    mut client: TcpStream,
    servers: Arc<[SocketAddr]>,
    next: Arc<AtomicUsize>,
    life: Option<Duration>,
) {
    for _ in 0..servers.len() {
        let chosen = servers[next.fetch_add(1, Ordering::Relaxed) % servers.len()];
        let Ok(mut server) = TcpStream::connect(chosen).await else {
            continue;
        };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let passing = copy_bidirectional(&mut client, &mut server);
        // Either side may break; the other sees the end of its connection.
        match life {
            Some(life) => drop(tokio::time::timeout(life, passing).await),
            None => drop(passing.await),
        }
        return;
    }
}
