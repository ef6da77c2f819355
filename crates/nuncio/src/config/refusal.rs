//! Why a configuration is refused: where, what, and what to do.

use std::fmt;

use super::origin::Origin;

/// One thing wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Where it was said.
    pub(crate) origin: Origin,
    /// The key, dotted; empty for the file as a whole.
    pub(crate) key: String,
    /// What is wrong.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}\n  hint: {}", self.message, self.hint)
    }
}

/// Everything found wrong at once, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusals(pub(crate) Vec<Refusal>);

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, refusal) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{refusal}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusals {}

impl From<Refusal> for Refusals {
    fn from(refusal: Refusal) -> Self {
        Self(vec![refusal])
    }
}
