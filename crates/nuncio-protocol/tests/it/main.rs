//! The wire of version 1.0, proved against files written by hand from the specification's tables.
//!
//! Ids such as `BR-136` or `JSON-06` in comments are those of the public bug reports and protocol
//! requirements that a test stands for.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod envelopes;
mod errors;
mod fuzz;
mod golden;
mod grpc;
mod grpc_frames;
mod grpc_status;
mod leniency;
mod older;
mod reducer;
mod round_trip;
mod scalars;
mod signing;
mod strategies;
mod support;
/// The bodies of the fuzz targets, run here over bounded input too.
#[expect(unreachable_pub, reason = "a library of its own for `cargo fuzz`")]
#[path = "../../../../fuzz/src/lib.rs"]
mod targets;
mod validation;
