//! Slows down who guesses credentials.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

const FAILURES: u32 = 10;
const WINDOW: Duration = Duration::from_secs(60);
const MAX_PEERS: usize = 10_000;

/// Failures per address within a minute; an IPv6 address counts by its /64 network.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    peers: Mutex<HashMap<IpAddr, Failures>>,
}

#[derive(Debug)]
struct Failures {
    count: u32,
    since: Instant,
}

impl Throttle {
    /// How long an address has to wait, if it has failed too often.
    pub(crate) fn closed_for(&self, peer: IpAddr) -> Option<Duration> {
        let peers = self.peers.lock();
        let failures = peers.get(&network(peer))?;
        let passed = failures.since.elapsed();
        (failures.count >= FAILURES && passed < WINDOW).then(|| WINDOW - passed)
    }

    /// Counts a failure.
    pub(crate) fn note(&self, peer: IpAddr) {
        let now = Instant::now();
        let mut peers = self.peers.lock();
        if peers.len() >= MAX_PEERS {
            peers.retain(|_, failures| now - failures.since < WINDOW);
        }
        if peers.len() >= MAX_PEERS {
            peers.clear();
        }
        let fresh = Failures {
            count: 0,
            since: now,
        };
        let failures = peers.entry(network(peer)).or_insert(fresh);
        if now - failures.since >= WINDOW {
            failures.count = 0;
            failures.since = now;
        }
        failures.count += 1;
    }
}

pub(crate) fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let prefix = address.to_bits() & (u128::MAX << 64);
            Ipv6Addr::from_bits(prefix).into()
        }
        v4 => v4,
    }
}
