//! The spellings of keys and signatures: base64url, PEM, and as much DER as public keys need.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::error::SigningError;

pub(super) fn base64url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads base64url without padding, in its one canonical spelling.
pub(super) fn from_base64url(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// One block of a PEM text.
pub(super) struct Block<'a> {
    pub(super) label: &'a str,
    pub(super) der: Vec<u8>,
}

/// Reads every block of a PEM text; what stands between them is ignored.
pub(super) fn pem_blocks(text: &str) -> Result<Vec<Block<'_>>, SigningError> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let Some(label) = between(line, "-----BEGIN ") else {
            continue;
        };
        let mut body = String::new();
        loop {
            match lines.next() {
                Some(line) if between(line, "-----END ") == Some(label) => break,
                Some(line) => body.push_str(line),
                None => {
                    return Err(SigningError::key(format!(
                        "the PEM block {label} has no end"
                    )));
                }
            }
        }
        let der = STANDARD
            .decode(body)
            .map_err(|_| SigningError::key(format!("the PEM block {label} is not base64")))?;
        blocks.push(Block { label, der });
    }
    Ok(blocks)
}

fn between<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    line.strip_prefix(start)?.strip_suffix("-----")
}

pub(super) fn pem(label: &str, der: &[u8]) -> String {
    let base64 = STANDARD.encode(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    let mut rest = base64.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    text + "-----END " + label + "-----\n"
}

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;

/// The parts of an X.509 `SubjectPublicKeyInfo`.
pub(super) struct PublicKeyInfo<'a> {
    /// The algorithm's identifier with its parameters, in DER.
    pub(super) algorithm: &'a [u8],
    pub(super) key: &'a [u8],
}

pub(super) fn public_key_info(der: &[u8]) -> Option<PublicKeyInfo<'_>> {
    let (outer, rest) = take(der, SEQUENCE)?;
    let (algorithm, after) = take(outer, SEQUENCE)?;
    let (bits, end) = take(after, BIT_STRING)?;
    let key = bits.strip_prefix(&[0])?;
    (rest.is_empty() && end.is_empty()).then_some(PublicKeyInfo { algorithm, key })
}

/// Splits one element off: its content, and what follows it.
fn take(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = der.strip_prefix(&[tag])?.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x83 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = bytes.iter().fold(0, |n, byte| n << 8 | usize::from(*byte));
            (length, rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// How many bits the modulus of a PKCS#1 `RSAPublicKey` has.
pub(super) fn rsa_bits(der: &[u8]) -> Option<usize> {
    let (members, _) = take(der, SEQUENCE)?;
    let (modulus, _) = take(members, INTEGER)?;
    let start = modulus.iter().position(|byte| *byte != 0)?;
    Some((modulus.len() - start) * 8 - modulus[start].leading_zeros() as usize)
}

/// A PKCS#1 `RSAPublicKey`.
pub(super) fn rsa_public_key(modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
    element(SEQUENCE, &[integer(modulus), integer(exponent)].concat())
}

fn integer(bytes: &[u8]) -> Vec<u8> {
    let start = bytes.iter().position(|byte| *byte != 0);
    let magnitude = start.map_or(&[0][..], |start| &bytes[start..]);
    let negative = magnitude.first().is_none_or(|first| *first >= 0x80);
    let sign: &[u8] = if negative { &[0] } else { &[] };
    element(INTEGER, &[sign, magnitude].concat())
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let zeros = length.iter().take_while(|byte| **byte == 0).count();
    let length = &length[zeros..];
    let mut out = vec![tag];
    match content.len() {
        short @ 0..=0x7f => out.push(short as u8),
        _ => {
            out.push(0x80 | length.len() as u8);
            out.extend_from_slice(length);
        }
    }
    out.extend_from_slice(content);
    out
}
