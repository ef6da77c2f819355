//! Failures of calls in the words of the a2a-cli specification: the protocol's errors under their
//! own names, ours under `A2ACLI_ERR_…`.

use nuncio_client::{Cause, ConnectError, DiscoveryError, TryOutcome, cause};
use nuncio_egress::EgressError;
use nuncio_protocol::{A2aError, ErrorKind};

use crate::outcome::{Code, Failure};

/// The name of a protocol error. Spec: §3.3.2, §9.5
fn name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::TaskNotFound => "TaskNotFoundError",
        ErrorKind::TaskNotCancelable => "TaskNotCancelableError",
        ErrorKind::PushNotificationNotSupported => "PushNotificationNotSupportedError",
        ErrorKind::UnsupportedOperation => "UnsupportedOperationError",
        ErrorKind::ContentTypeNotSupported | ErrorKind::UnsupportedMediaType => {
            "ContentTypeNotSupportedError"
        }
        ErrorKind::InvalidAgentResponse => "InvalidAgentResponseError",
        ErrorKind::ExtendedAgentCardNotConfigured => "ExtendedAgentCardNotConfiguredError",
        ErrorKind::ExtensionSupportRequired => "ExtensionSupportRequiredError",
        ErrorKind::VersionNotSupported => "VersionNotSupportedError",
        ErrorKind::InvalidParams => "InvalidParamsError",
        ErrorKind::InvalidRequest | ErrorKind::PayloadTooLarge => "InvalidRequestError",
        ErrorKind::ParseError => "JSONParseError",
        ErrorKind::MethodNotFound | ErrorKind::MethodNotAllowed | ErrorKind::AgentNotFound => {
            "MethodNotFoundError"
        }
        _ => "InternalError",
    }
}

/// Why a call failed; `with_credentials` says whether any were sent.
pub(crate) fn of_call(doing: &str, error: &A2aError, with_credentials: bool) -> Failure {
    let message = format!("failed to {doing}: {error}");
    match cause(error) {
        Some(Cause::BadAnswer) => {
            return Failure::new(Code::Protocol("InvalidAgentResponseError"), message)
                .hint("--debug shows what was exchanged");
        }
        Some(Cause::TotalTimeout | Cause::StillRunning) => {
            return Failure::new(Code::Timeout, message);
        }
        Some(_) => {
            return Failure::new(Code::Unreachable, message)
                .hint("see whether the agent runs and the address is right; --debug shows more");
        }
        None => {}
    }
    match error.kind {
        ErrorKind::Unauthenticated if with_credentials => {
            Failure::new(Code::AuthFailed, message).a2a_code(401)
        }
        ErrorKind::Unauthenticated => Failure::new(Code::CredentialsMissing, message).a2a_code(401),
        ErrorKind::PermissionDenied => Failure::new(Code::AuthFailed, message).a2a_code(403),
        kind => Failure::new(Code::Protocol(name(kind)), message).a2a_code(kind.json_rpc_code()),
    }
}

/// Why there is no card.
pub(crate) fn of_discovery(error: &DiscoveryError) -> Failure {
    let message = format!("failed to get the agent card: {error}");
    let outcomes = || error.tries.iter().map(|one| &one.outcome);
    let reached = |outcome: &TryOutcome| !matches!(outcome, TryOutcome::Failed(_));
    let refused = outcomes().find_map(|outcome| match outcome {
        TryOutcome::Status(status) if matches!(status.as_u16(), 401 | 403) => Some(status.as_u16()),
        _ => None,
    });
    if let Some(status) = refused {
        return Failure::new(Code::AuthFailed, message)
            .a2a_code(status)
            .hint("the card itself is protected; save it to a file and name the file");
    }
    if !error.tries.is_empty() && !outcomes().any(reached) {
        let hint = "see whether the agent runs and the address is right";
        return Failure::new(Code::Unreachable, message).hint(hint);
    }
    let no_cards = outcomes().all(|outcome| matches!(outcome, TryOutcome::NotACard(_)));
    if !error.tries.is_empty() && no_cards {
        return Failure::new(Code::CardInvalid, message);
    }
    Failure::new(Code::CardNotFound, message)
        .hint("name the host, or the whole URL of the card, or a file with --agent-card")
}

/// Why there is no client for a card.
pub(crate) fn of_connecting(error: ConnectError) -> Failure {
    let message = format!("failed to connect: {error}");
    match error {
        ConnectError::Discovery(error) => of_discovery(&error),
        ConnectError::NoInterface { .. } => {
            Failure::new(Code::Protocol("VersionNotSupportedError"), message)
                .hint("without --a2a-version 0.3 nothing older than 1.0 is spoken; bindings are JSONRPC, HTTP+JSON and GRPC")
        }
        ConnectError::Header(_) => Failure::usage(message),
        _ => Failure::internal(message),
    }
}

/// Why nothing can be sent at all.
pub(crate) fn of_egress(error: &EgressError) -> Failure {
    Failure::internal(format!("failed to set up the HTTP client: {error}"))
}
