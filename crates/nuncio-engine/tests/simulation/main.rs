//! R20: leases, cursors and resumption while processes crash, freeze and lose their database.
//!
//! Three processes share one store. Clients send, answer, cancel and follow tasks through any of
//! them, and repeat what was not answered. Time is paused and every choice comes from the seed, so
//! that a seed which breaks a promise breaks it again: `NUNCIO_SEED=17 cargo test -p nuncio-engine
//! --test simulation`. `NUNCIO_SEEDS` says how many are tried; 500 unless it is set.
#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod agent;
mod chance;
mod check;
mod client;
mod deliveries;
mod owners;
#[path = "../../../nuncio/tests/reliability/report.rs"]
#[expect(
    dead_code,
    reason = "shared with the tests of the binary, which use all of it"
)]
mod report;
mod sessions;
mod wire;
mod world;

use std::time::Duration;

use chance::Chance;
use report::Report;
use world::World;

/// How long faults go on, in simulated time.
const TROUBLE: Duration = Duration::from_secs(40);

/// Clients, each with one task.
const CLIENTS: u64 = 12;

/// How long everything may take to come to its end once the faults are over.
const PATIENCE: Duration = Duration::from_secs(900);

/// Lives through a seed; gives the logs of all tasks as text.
fn live_through(seed: u64) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let world = World::new(Chance::of_seed(seed));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| tokio::spawn(client::live(world.clone(), number)))
            .collect();
        world.trouble(TROUBLE).await;
        let mut told = Vec::new();
        for client in clients {
            let ended = tokio::time::timeout(PATIENCE, client).await;
            told.push(ended.expect("every task comes to an end").unwrap());
        }
        check::promises_are_kept(&world, &told).await
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "whoever runs it chooses the seeds"
)]
fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn r20_no_seed_breaks_a_promise() {
    let seeds = match number("NUNCIO_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("NUNCIO_SEEDS").unwrap_or(500),
    };
    let mut report = Report::new("simulation", "R20");
    report.set("seeds", seeds.end - seeds.start);
    for seed in seeds {
        if let Err(broken) = std::panic::catch_unwind(|| live_through(seed)) {
            eprintln!("seed {seed} breaks a promise: NUNCIO_SEED={seed} shows it again");
            std::panic::resume_unwind(broken);
        }
    }
    report.passed();
}

#[test]
fn a_seed_reproduces() {
    assert_eq!(live_through(7), live_through(7));
}
