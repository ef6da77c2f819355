//! What surrounds messages and errors in gRPC: length prefixes, and the texts of two headers.
//!
//! Pure functions of bytes and texts; HTTP/2 is left to servers and clients.

use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::{A2aError, ErrorKind};

/// One byte that tells whether the message is compressed, four for its length.
const PREFIX_BYTES: usize = 5;

/// Puts the prefix before a message, which is not compressed.
pub fn encode(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).expect("messages are far smaller than 4 GiB");
    let mut framed = BytesMut::with_capacity(PREFIX_BYTES + message.len());
    framed.put_u8(0);
    framed.put_u32(length);
    framed.put_slice(message);
    framed.freeze()
}

/// Cuts a body back into its messages, however the network has split it.
///
/// Holds at most one message beyond what was pushed and not yet taken.
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: BytesMut,
    max_message_bytes: usize,
}

impl FrameDecoder {
    /// A decoder that refuses messages larger than this.
    pub fn new(max_message_bytes: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            max_message_bytes,
        }
    }

    /// Adds what has arrived.
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// Takes the next whole message; `None` until more is pushed.
    ///
    /// # Errors
    /// [`ErrorKind::PayloadTooLarge`] as soon as a prefix announces too much,
    /// [`ErrorKind::MethodNotFound`], gRPC's UNIMPLEMENTED, for a compressed message, and
    /// [`ErrorKind::InvalidRequest`] for what is no prefix. The body is of no use after any.
    pub fn next_message(&mut self) -> Result<Option<Bytes>, A2aError> {
        let Some(mut prefix) = self.buffer.get(..PREFIX_BYTES) else {
            return Ok(None);
        };
        match prefix.get_u8() {
            0 => {}
            1 => {
                return Err(refused(
                    ErrorKind::MethodNotFound,
                    "messages must not be compressed",
                ));
            }
            _ => {
                return Err(refused(
                    ErrorKind::InvalidRequest,
                    "the body is not framed as gRPC",
                ));
            }
        }
        let length = prefix.get_u32() as usize;
        if length > self.max_message_bytes {
            let max = self.max_message_bytes;
            let message = format!("the message of {length} bytes is larger than {max} bytes");
            return Err(A2aError::new(ErrorKind::PayloadTooLarge, message));
        }
        if self.buffer.len() - PREFIX_BYTES < length {
            return Ok(None);
        }
        self.buffer.advance(PREFIX_BYTES);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }

    /// Checks that the body has not ended inside a message; to be asked after its last one.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`].
    pub fn finish(&self) -> Result<(), A2aError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        Err(refused(
            ErrorKind::InvalidRequest,
            "the body ends inside a message",
        ))
    }
}

fn refused(kind: ErrorKind, message: &str) -> A2aError {
    A2aError::new(kind, message)
}

/// What `grpc-message` writes as `%` and two digits, beside all that is not ASCII.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

/// Writes an error's text as `grpc-message`.
pub fn encode_message(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// Reads `grpc-message`; broken escapes stay as they are, and broken UTF-8 is replaced.
pub fn decode_message(header: &str) -> String {
    percent_decode_str(header).decode_utf8_lossy().into_owned()
}

/// Eight digits are all that `grpc-timeout` has room for.
const MAX_TIMEOUT: u128 = 99_999_999;

/// The units of `grpc-timeout` in nanoseconds.
const UNITS: [(char, u128); 6] = [
    ('n', 1),
    ('u', 1_000),
    ('m', 1_000_000),
    ('S', 1_000_000_000),
    ('M', 60_000_000_000),
    ('H', 3_600_000_000_000),
];

/// Reads `grpc-timeout`, such as `100m`; `None` for what is none.
pub fn parse_timeout(header: &str) -> Option<Duration> {
    let unit = header.chars().next_back()?;
    let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let digits = header.strip_suffix(unit)?;
    let well_formed = (1..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    let count: u128 = digits.parse().ok().filter(|_| well_formed)?;
    let total = count * nanos;
    let seconds = u64::try_from(total / 1_000_000_000).ok()?;
    Some(Duration::new(seconds, (total % 1_000_000_000) as u32))
}

/// Writes `grpc-timeout` in the finest unit that has room, rounded up; 11,000 years at most.
pub fn format_timeout(timeout: Duration) -> String {
    let nanos = timeout.as_nanos();
    let fitting = UNITS
        .iter()
        .map(|(unit, size)| (nanos.div_ceil(*size), unit))
        .find(|(count, _)| *count <= MAX_TIMEOUT);
    match fitting {
        Some((count, unit)) => format!("{count}{unit}"),
        None => format!("{MAX_TIMEOUT}H"),
    }
}
