//! What a program takes from its surroundings: the time and fresh identifiers.

use std::fmt::Debug;

use crate::Timestamp;

/// Tells the time. Passed in, so that tests can hold it still.
pub trait Clock: Send + Sync + Debug {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// Makes identifiers nobody can guess: at least 122 random bits each, or numbered in tests.
///
/// Ids made later sort later where that is possible (UUIDv7), which keeps them cheap as keys.
pub trait Ids: Send + Sync + Debug {
    /// A fresh identifier, never the same twice.
    fn next(&self) -> String;
}
