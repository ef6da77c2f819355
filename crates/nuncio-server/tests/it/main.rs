//! The server on real sockets, with a scripted agent behind it.

#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(
    clippy::field_reassign_with_default,
    reason = "the protocol's types cannot be written as literals elsewhere"
)]

mod auth;
mod call_trees;
mod card;
mod dialects;
mod errors;
mod fake;
mod grpc;
mod harness;
mod json_rpc;
mod malformed;
mod older_routes;
mod ops;
mod rest;
mod stream;
mod version;
mod workspaces;
