//! The engine's behaviour, through the service that callers see.
//!
//! Ids such as `BR-014` or `OP-SEND-09` in names and comments are those of the public bug reports
//! and protocol requirements that a test stands for.
#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod cancel;
mod children;
mod delivery;
mod events;
mod failures;
mod hand_over;
mod list;
mod passing;
mod push;
mod receivers;
mod recovery;
mod redelivery;
mod replicas;
mod retention;
mod secrets;
mod send;
mod session;
mod shared_store;
mod signatures;
mod spans;
mod stream;
