//! PostgreSQL: a database that many processes share.
//!
//! Creates and appends go through a few writers, each with a connection of its own: one takes all
//! that waits for it and has it written by one call of one stored function, which is one round trip
//! and one commit. Everything else is a statement on a connection of a small pool. Connections come
//! back by themselves; while there is none, calls fail soon. A further connection tells the other
//! processes what has been written, and hears of what they write.

mod address;
mod check;
mod connection;
mod deliveries;
mod failure;
mod feed;
mod lease;
mod link;
mod list;
mod nodes;
mod options;
mod owners;
mod push;
mod read;
mod rows;
mod schema;
mod sessions;
mod settle;
mod store;
mod sweep;
#[cfg(test)]
mod tests;
mod tls;
mod transfer;
mod webhooks;
mod write;
mod writer;

pub(crate) use address::{SCHEMES, without_secrets};
pub use options::PostgresOptions;
pub use store::PostgresStore;
