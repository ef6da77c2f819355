//! The engine's behaviour, through the service that callers see. Case ids are those of CASES.

mod cancel;
mod failures;
mod list;
mod recovery;
mod send;
mod stream;
