//! The program as its users meet it: the real binary, a real server, real pipes and signals.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod administration;
mod agents;
mod auth;
mod card;
mod compliance;
#[path = "../../../nuncio-store/tests/it/database.rs"]
#[expect(
    dead_code,
    reason = "shared with the tests of the store, which use all of it"
)]
mod database;
mod db;
mod debug;
mod deliveries;
mod demo;
mod doctor;
mod drain;
mod errors;
mod examples;
mod fake;
mod gateway;
mod help;
mod insecure;
mod interaction;
mod keep;
mod kinds;
mod layers;
mod memorylake;
mod models;
mod packaging;
mod parts;
mod passed;
mod portable;
mod postgres;
mod push;
#[path = "../reliability/report.rs"]
#[expect(
    dead_code,
    reason = "shared with the tests of reliability, which use all of it"
)]
mod report;
mod retention;
mod secure;
mod send;
mod serve;
mod settings;
mod support;
mod task;
mod telemetry;
mod tls;
mod trace;
mod transport;
mod webhooks;
