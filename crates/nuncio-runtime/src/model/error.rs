//! Why a model did not answer.

use std::time::Duration;

/// Why a model did not answer, sorted by what can be done.
///
/// The texts hold no secret: keys are cut out, and URLs are named by their origin at most.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// It cannot be reached or is overloaded: try again later.
    #[error("the model is not available: {reason}")]
    Unavailable {
        /// What went wrong.
        reason: String,
        /// How long the provider asks to wait.
        retry_after: Option<Duration>,
    },
    /// Too many requests: try again later.
    #[error("the model's provider limits the rate of requests")]
    RateLimited {
        /// How long the provider asks to wait.
        retry_after: Option<Duration>,
    },
    /// The request cannot be answered as it is: mend it.
    #[error("the model's provider refused the request: {0}")]
    Invalid(String),
    /// The key is missing, wrong, or not allowed to do this: ask who keeps it.
    #[error("the model's provider refused the credential (HTTP status {0})")]
    Auth(u16),
    /// The conversation is too long for the model: shorten it.
    #[error("the conversation is too long for the model")]
    ContextTooLong,
    /// The answer broke off before its end.
    #[error("the model's answer was cut off: {0}")]
    Cut(String),
    /// A layer does not let the request pass; the caller is told why.
    #[error("{0}")]
    Stopped(String),
    /// The provider will not have this answered.
    #[error("the model's provider withheld the answer: {0}")]
    Refused(String),
}

impl ModelError {
    /// It cannot be reached, for this reason.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::Unavailable {
            reason: reason.into(),
            retry_after: None,
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. } | Self::RateLimited { .. } | Self::Cut(_)
        )
    }

    /// How long the provider asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable { retry_after, .. } | Self::RateLimited { retry_after } => {
                *retry_after
            }
            _ => None,
        }
    }

    /// A name for logs and spans, one of a fixed few.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } => "unavailable",
            Self::RateLimited { .. } => "rate_limited",
            Self::Invalid(_) => "invalid",
            Self::Auth(_) => "auth",
            Self::ContextTooLong => "context_too_long",
            Self::Cut(_) => "cut",
            Self::Refused(_) => "refused",
            Self::Stopped(_) => "stopped",
        }
    }
}
