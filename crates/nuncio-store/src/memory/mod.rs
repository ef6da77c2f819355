//! Everything in memory: for tests, trials and agents that need not survive their process.
//!
//! The same contract as the databases, without their promise: what is here is gone with the
//! process. Futures are ready at once, and no call waits for another longer than a lock.

mod contents;
mod conversations;
mod deliveries;
mod desk;
mod entry;
mod hearing;
mod lease;
mod log;
mod owners;
mod scope;
mod sessions;
mod store;
mod upkeep;

pub use store::{MemoryOptions, MemoryStore};
