//! Pauses of members, kept until they are answered.

use nuncio_engine::{Pause, PauseReason};
use nuncio_protocol::Message;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A pause as it is kept in a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptPause {
    reason: Reason,
    pub(super) prompt: Message,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schema: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reason {
    Input,
    Approval { tool: String, args_hash: String },
    Auth { scheme: String, url: Option<String> },
    External,
}

impl From<Pause> for KeptPause {
    fn from(pause: Pause) -> Self {
        Self {
            reason: match pause.reason {
                PauseReason::Input => Reason::Input,
                PauseReason::Approval { tool, args_hash } => Reason::Approval { tool, args_hash },
                PauseReason::Auth { scheme, url } => Reason::Auth { scheme, url },
                PauseReason::External => Reason::External,
            },
            prompt: pause.prompt,
            schema: pause.schema,
        }
    }
}

impl From<KeptPause> for Pause {
    fn from(kept: KeptPause) -> Self {
        Self {
            reason: match kept.reason {
                Reason::Input => PauseReason::Input,
                Reason::Approval { tool, args_hash } => PauseReason::Approval { tool, args_hash },
                Reason::Auth { scheme, url } => PauseReason::Auth { scheme, url },
                Reason::External => PauseReason::External,
            },
            prompt: kept.prompt,
            schema: kept.schema,
        }
    }
}
