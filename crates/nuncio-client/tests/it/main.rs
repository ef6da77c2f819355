//! Calling agents over real sockets; each test names the row of CASES.md or the rule it proves.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod choice;
mod conversation;
mod discovery;
mod errors;
mod exchange;
mod lenient;
mod limits;
mod proxy;
mod retries;
mod signatures;
mod sse;
mod streams;
mod support;
