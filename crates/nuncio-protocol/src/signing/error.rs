//! Why something could not be signed, or a key not read.

use crate::json::DecodeError;

/// Why there is no signature, or no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SigningError {
    /// The card is no JSON object in which each key stands once.
    #[error("the card cannot be read: {0}")]
    Syntax(String),
    /// The card is not as the protocol has it.
    #[error("the card cannot be signed: {}{}", at(.0), .0.message)]
    Card(DecodeError),
    /// A key cannot be read or used; says why.
    #[error("{0}")]
    Key(String),
    /// The crypto library has failed.
    #[error("the crypto library gave no {0}")]
    Crypto(&'static str),
}

fn at(error: &DecodeError) -> String {
    if error.path.is_empty() {
        String::new()
    } else {
        format!("{}: ", error.path)
    }
}

impl SigningError {
    pub(super) fn key(why: impl Into<String>) -> Self {
        Self::Key(why.into())
    }
}
