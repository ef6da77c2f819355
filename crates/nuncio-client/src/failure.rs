//! What goes wrong on the way to an agent, told as the errors that agents give.
//!
//! `AgentService` knows [`A2aError`] only. An error that was made here carries its cause in its
//! metadata, under a key no agent uses, so that [`cause`] can tell it from one of the agent's.

use std::time::Duration;

use nuncio_egress::{EgressError, Limit};
use nuncio_protocol::{A2aError, ErrorKind, TaskId};

const CAUSE: &str = "nuncio.cause";
const TASK: &str = "taskId";

/// Why a call failed on our side of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// A rule of the egress policy forbids the address. Nothing was sent.
    Refused,
    /// No connection came about. Nothing was sent.
    Connect,
    /// The connection limit was hit. Nothing was sent.
    ConnectTimeout,
    /// The first-byte limit was hit.
    FirstByteTimeout,
    /// The idle limit was hit.
    IdleTimeout,
    /// The total limit was hit.
    TotalTimeout,
    /// The connection or the stream ended too early.
    Cut,
    /// The answer is larger than allowed, or no answer of the protocol.
    BadAnswer,
    /// The wait was given up; the task goes on.
    StillRunning,
    /// The HTTP client could not make the request at all.
    Setup,
}

const NAMES: &[(Cause, &str)] = &[
    (Cause::Refused, "refused"),
    (Cause::Connect, "connect"),
    (Cause::ConnectTimeout, "connect-timeout"),
    (Cause::FirstByteTimeout, "first-byte-timeout"),
    (Cause::IdleTimeout, "idle-timeout"),
    (Cause::TotalTimeout, "total-timeout"),
    (Cause::Cut, "cut"),
    (Cause::BadAnswer, "bad-answer"),
    (Cause::StillRunning, "still-running"),
    (Cause::Setup, "setup"),
];

impl Cause {
    /// The name in metadata and messages.
    pub fn as_str(self) -> &'static str {
        NAMES
            .iter()
            .find(|(cause, _)| *cause == self)
            .map_or("", |(_, name)| name)
    }
}

/// Why a call failed on our side; `None` if the error is the agent's own.
pub fn cause(error: &A2aError) -> Option<Cause> {
    let name = error.metadata.get(CAUSE)?;
    NAMES
        .iter()
        .find(|(_, known)| known == name)
        .map(|(cause, _)| *cause)
}

/// The task that an error of this crate speaks of, so that it can be looked for later.
pub fn task_id(error: &A2aError) -> Option<TaskId> {
    error.metadata.get(TASK).map(|id| id.as_str().into())
}

pub(crate) fn failure(kind: ErrorKind, cause: Cause, message: impl Into<String>) -> A2aError {
    A2aError::new(kind, message).with(CAUSE, cause.as_str())
}

pub(crate) fn bad_answer(message: impl Into<String>) -> A2aError {
    failure(ErrorKind::InvalidAgentResponse, Cause::BadAnswer, message)
}

pub(crate) fn cut(message: &str) -> A2aError {
    failure(ErrorKind::Unavailable, Cause::Cut, message)
}

/// An error as the agent gave it, which cannot speak for our side.
pub(crate) fn of_the_agent(mut error: A2aError) -> A2aError {
    error.metadata.remove(CAUSE);
    error
}

pub(crate) fn about(task: &TaskId, error: A2aError) -> A2aError {
    if error.metadata.contains_key(TASK) {
        error
    } else {
        error.with(TASK, task.as_str())
    }
}

/// Turns a failure of the door into one of the protocol; `total` is the limit as it was set.
pub(crate) fn from_egress(error: EgressError, total: Option<Duration>) -> A2aError {
    let error = match (error, total) {
        (EgressError::Timeout { origin, limit, .. }, Some(after)) if limit == Limit::Total => {
            EgressError::Timeout {
                origin,
                limit,
                after,
            }
        }
        (error, _) => error,
    };
    let (kind, cause) = match &error {
        EgressError::Refused(_) => (ErrorKind::InvalidRequest, Cause::Refused),
        EgressError::Resolve { .. } | EgressError::Connect { .. } => {
            (ErrorKind::Unavailable, Cause::Connect)
        }
        EgressError::Timeout { limit, .. } => (
            ErrorKind::DeadlineExceeded,
            match limit {
                Limit::Connect => Cause::ConnectTimeout,
                Limit::FirstByte => Cause::FirstByteTimeout,
                Limit::Idle => Cause::IdleTimeout,
                _ => Cause::TotalTimeout,
            },
        ),
        EgressError::Broken { .. } => (ErrorKind::Unavailable, Cause::Cut),
        EgressError::TooLarge { .. } => (ErrorKind::InvalidAgentResponse, Cause::BadAnswer),
        _ => (ErrorKind::Internal, Cause::Setup),
    };
    failure(kind, cause, error.to_string())
}
