//! The contract every backend keeps, and what only some backends promise.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

mod contract;
mod copies;
mod database;
mod draft;
mod folding;
mod kills;
mod memory;
mod nats;
mod parts;
mod postgres;
mod postgres_upkeep;
#[path = "../../../nuncio/tests/reliability/report.rs"]
#[expect(
    dead_code,
    reason = "shared with the tests of the binary, which use all of it"
)]
mod report;
mod sqlite;
