//! Calling agents over real sockets; each test names the row of CASES.md or the rule it proves.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod agent;
mod choice;
mod conversation;
mod dialects;
mod discovery;
mod errors;
mod exchange;
mod grpc;
mod lenient;
mod limits;
mod older;
mod proxy;
mod retries;
mod signatures;
mod sse;
mod streams;
mod support;
