//! What callers are told when the agent elsewhere does not answer as it should.

use nuncio_client::{Cause, cause};
use nuncio_protocol::{A2aError, AgentId, ErrorKind};

/// The agent's own errors as they are; of what went wrong on the way there, what a caller can use: where
/// the agent is, and how it is reached, is nobody's business but ours.
pub(super) fn told(agent: &AgentId, error: A2aError) -> A2aError {
    let Some(cause) = cause(&error) else {
        return error;
    };
    let (kind, message) = match cause {
        Cause::FirstByteTimeout | Cause::IdleTimeout | Cause::TotalTimeout => (
            ErrorKind::DeadlineExceeded,
            "the agent did not answer in time",
        ),
        Cause::Cut => (
            ErrorKind::Unavailable,
            "the connection to the agent broke before its answer was complete",
        ),
        Cause::BadAnswer => (
            ErrorKind::InvalidAgentResponse,
            "the agent's answer does not keep to the protocol",
        ),
        _ => (ErrorKind::Unavailable, UNREACHABLE),
    };
    tracing::warn!(agent.id = %agent, %error, "an agent elsewhere does not answer");
    A2aError::new(kind, message)
}

const UNREACHABLE: &str = "the agent cannot be reached, try again later";

/// There is no way to the agent.
pub(super) fn unreachable(agent: &AgentId, why: &str) -> A2aError {
    tracing::warn!(agent.id = %agent, "an agent elsewhere is not to be had: {why}");
    A2aError::new(ErrorKind::Unavailable, UNREACHABLE)
}
