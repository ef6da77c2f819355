//! What must withstand kills, cuts and faults, with the real binary (PROMISES, section 2).
//!
//! The short form runs with all other tests; `scripts/reliability` runs the long form, of which
//! `docs/reliability.md` tells. Each test leaves a report in JSON: see [`report`].
#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

#[path = "../../../nuncio-store/tests/it/database.rs"]
#[expect(
    dead_code,
    reason = "shared with the tests of the store, which use all of it"
)]
mod database;
mod databases;
mod faults;
mod freezes;
mod idle;
mod kills;
mod load;
mod proxy;
mod readers;
mod replicas;
mod report;
mod servers;
mod sound;
