//! Both versions in protobuf: messages, errors and the framing of gRPC. Spec: §10
//!
//! [`V1`] and [`V0_3`] turn bytes into operations and outcomes into bytes; [`encode_status`] and
//! [`decode_status`] do the same for errors, [`frame`] for what surrounds the messages. HTTP/2 is
//! left to servers and clients.
//!
//! Numbers of `data` and `metadata` are doubles here (JSON-11): whole ones below 2^53 come back as
//! integers, larger ones as the nearest double. Protobuf readers give up at 100 nested messages,
//! and an object in an object takes three: values of requests nest 30 objects or 45 lists deep at
//! most. What came over JSON may be deeper; no reader of protobuf takes it.

mod convert;
pub mod frame;
#[expect(
    clippy::enum_variant_names,
    unreachable_pub,
    reason = "generated from the names of the protos, for any reader"
)]
mod generated;
mod status;
#[cfg(test)]
mod tests;
mod v0_3;
mod v1;

use crate::{A2aError, Outcome, SendMessageResponse, StreamResponse};

pub use status::{StatusParts, decode_status, encode_status};
pub use v0_3::V0_3;
pub use v1::V1;

/// The services of both versions with all they import: an encoded
/// `google.protobuf.FileDescriptorSet`, for server reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/descriptors.bin");

/// The item that answers a streaming method whose operation was answered by another one.
fn only_item(outcome: &Outcome) -> Result<StreamResponse, A2aError> {
    Ok(match outcome {
        Outcome::Task(task) | Outcome::Sent(SendMessageResponse::Task(task)) => {
            StreamResponse::Task(task.clone())
        }
        Outcome::Sent(SendMessageResponse::Message(message)) => {
            StreamResponse::Message(message.clone())
        }
        _ => return Err(not_one_message()),
    })
}

/// The items of a stream are written one by one.
fn not_one_message() -> A2aError {
    A2aError::internal()
}
