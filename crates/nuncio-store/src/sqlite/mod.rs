//! SQLite: one file, one writer that groups commits, a few readers beside it.
//!
//! Writes go through a bounded channel to one thread, which takes all that wait, applies them in
//! one transaction, syncs once, and only then answers. Reads run on other connections and see
//! what is committed. One process at a time holds the file, by a lock beside it.

mod append;
mod batch;
mod check;
mod connection;
mod copy;
mod create;
mod deliveries;
mod failure;
mod lease;
mod list;
mod nodes;
mod owners;
mod push;
mod read;
mod readers;
mod schema;
mod session_read;
mod session_write;
mod sessions;
mod settle;
mod store;
mod sweep;
#[cfg(test)]
mod tests;
mod transfer;
mod webhooks;
mod writer;

pub use check::check;
pub use connection::{SqliteOptions, Synchronous};
pub use copy::{backup, examine, migrate, restore};
pub use store::SqliteStore;
