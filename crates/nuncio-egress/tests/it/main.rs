//! What leaves the house: S03, S04, S05, BR-092, BR-161, BR-171.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod addresses;
mod answers;
mod http2;
mod proxies;
mod resolution;
mod support;
mod tls;
mod wire;
