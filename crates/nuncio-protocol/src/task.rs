//! Tasks and the rule for their states.

use crate::wire::{wire_enum, wire_message};
use crate::{Artifact, ContextId, Message, Metadata, TaskId, Timestamp};

wire_enum! {
    /// Where a task stands. Spec: §4.1.3
    pub enum TaskState {
        /// Not said, or of a newer version; never stored or sent.
        #[default]
        Unspecified = 0 "TASK_STATE_UNSPECIFIED",
        /// Accepted, not begun.
        Submitted = 1 "TASK_STATE_SUBMITTED",
        /// Being worked on.
        Working = 2 "TASK_STATE_WORKING",
        /// Done. Terminal.
        Completed = 3 "TASK_STATE_COMPLETED",
        /// Tried and could not. Terminal.
        Failed = 4 "TASK_STATE_FAILED",
        /// Canceled on request. Terminal.
        Canceled = 5 "TASK_STATE_CANCELED",
        /// Waits for an answer of the user. Interrupted.
        InputRequired = 6 "TASK_STATE_INPUT_REQUIRED",
        /// Will not be done. Terminal.
        Rejected = 7 "TASK_STATE_REJECTED",
        /// Waits for an authorisation. Interrupted.
        AuthRequired = 8 "TASK_STATE_AUTH_REQUIRED",
    }
}

/// A change of state that the rule forbids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a task cannot go from {} to {}", from.as_str(), to.as_str())]
pub struct IllegalTransition {
    /// The state it is in.
    pub from: TaskState,
    /// The state it was to take.
    pub to: TaskState,
}

impl TaskState {
    /// Whether nothing about the task can change any more (GEN-09).
    pub fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected
        )
    }

    /// Whether the task waits for somebody.
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    /// The only way a task changes its state: gives `to` back if the rule allows it.
    ///
    /// Staying in a non-terminal state is allowed (a new status message, for instance).
    ///
    /// # Errors
    /// [`IllegalTransition`] out of a terminal state, back to SUBMITTED, and to UNSPECIFIED.
    pub fn next(self, to: Self) -> Result<Self, IllegalTransition> {
        let back_to_start = to == Self::Submitted && self != Self::Submitted;
        if self.is_terminal() || to == Self::Unspecified || back_to_start {
            return Err(IllegalTransition { from: self, to });
        }
        Ok(to)
    }
}

wire_message! {
    /// The state of a task with its time and, perhaps, a word about it. Spec: §4.1.2
    pub struct TaskStatus {
        /// Where the task stands.
        state: TaskState => required "state",
        /// Commentary, or the question of an interrupted task; never the only copy of a result.
        message: Option<Message> => optional "message",
        /// Since when; always set by this server.
        timestamp: Option<Timestamp> => told "timestamp",
    }
}

impl TaskStatus {
    /// A status without a message.
    pub fn new(state: TaskState, timestamp: Timestamp) -> Self {
        Self {
            state,
            message: None,
            timestamp: Some(timestamp),
        }
    }
}

wire_message! {
    /// A unit of work with its history and results. Spec: §4.1.1
    pub struct Task {
        /// Made by the server.
        id: TaskId => required "id",
        /// The conversation it belongs to; always set by this server.
        context_id: Option<ContextId> => text "contextId",
        /// Where it stands.
        status: TaskStatus => required "status",
        /// What it has produced, in the order of first appearance.
        artifacts: Vec<Artifact> => list "artifacts",
        /// The messages of both sides, oldest first.
        history: Vec<Message> => list "history",
        /// Free-form additions.
        metadata: Option<Metadata> => optional "metadata",
    }
}

impl Task {
    /// A task without history or results.
    pub fn new(id: TaskId, context_id: ContextId, status: TaskStatus) -> Self {
        Self {
            id,
            context_id: Some(context_id),
            status,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CHECKLIST section 3, row by row.
    #[test]
    fn the_table_of_transitions_is_the_checklists() {
        use TaskState::{AuthRequired, Canceled, Completed, Failed, InputRequired, Rejected};
        use TaskState::{Submitted, Unspecified, Working};
        let open = [Submitted, Working, InputRequired, AuthRequired];
        let targets = [
            Working,
            InputRequired,
            AuthRequired,
            Completed,
            Failed,
            Canceled,
            Rejected,
        ];
        for from in open {
            for to in targets {
                assert_eq!(from.next(to), Ok(to), "{from:?} to {to:?}");
            }
            assert_eq!(
                from.next(Submitted).is_ok(),
                from == Submitted,
                "ST-07 {from:?}"
            );
            assert!(from.next(Unspecified).is_err(), "ST-02 {from:?}");
        }
        for from in [Completed, Failed, Canceled, Rejected] {
            for to in TaskState::ALL {
                assert!(from.next(*to).is_err(), "ST-01 {from:?} to {to:?}");
            }
        }
    }
}
