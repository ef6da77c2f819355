//! What came of each address that was asked for a card.

use std::fmt;

use http::StatusCode;
use nuncio_egress::{EgressError, Refusal, Rule};
use url::Url;

/// One address that was asked for a card.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Try {
    /// The address.
    pub url: Url,
    /// What came of it.
    pub outcome: TryOutcome,
}

/// Why an address gave no card.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TryOutcome {
    /// It answered with another status than 200. Redirects are not followed.
    Status(StatusCode),
    /// It answered with something else; the text says with what.
    NotACard(String),
    /// There was no answer.
    Failed(EgressError),
}

impl fmt::Display for Try {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.url)?;
        match &self.outcome {
            TryOutcome::Status(status) if status.is_redirection() => {
                write!(f, "HTTP status {status} (redirects are not followed)")
            }
            TryOutcome::Status(status) => write!(f, "HTTP status {status}"),
            TryOutcome::NotACard(what) => f.write_str(what),
            TryOutcome::Failed(error) => error.fmt(f),
        }
    }
}

/// No card was found; names every address that was tried and what came of it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("no agent card found for {asked}: {}", shown(.tries))]
pub struct DiscoveryError {
    /// The address that was asked for.
    pub asked: String,
    /// Every try, in order; empty if the address is no URL.
    pub tries: Vec<Try>,
}

fn shown(tries: &[Try]) -> String {
    if tries.is_empty() {
        return "it is not an http or https URL".to_owned();
    }
    let tries: Vec<String> = tries.iter().map(ToString::to_string).collect();
    tries.join("; ")
}

impl DiscoveryError {
    /// The rule that forbids the address, if that is why.
    pub fn refusal(&self) -> Option<Refusal> {
        self.tries.iter().find_map(|t| match &t.outcome {
            TryOutcome::Failed(EgressError::Refused(refusal)) => Some(*refusal),
            _ => None,
        })
    }
}

/// Whether the card may still be found elsewhere.
pub(super) fn leads_on(outcome: &TryOutcome) -> bool {
    match outcome {
        TryOutcome::NotACard(_) => true,
        TryOutcome::Status(status) => {
            let held_back = matches!(status.as_u16(), 401 | 403 | 407 | 408 | 429);
            !held_back && !status.is_server_error()
        }
        TryOutcome::Failed(EgressError::Refused(refusal)) => refusal.rule == Rule::NotAUrl,
        TryOutcome::Failed(_) => false,
    }
}
