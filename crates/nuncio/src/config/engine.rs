//! `[engine]`: what happens to tasks.

use std::time::Duration;

use nuncio_engine::Settings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens to tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct EngineConfig {
    /// How long a blocking send waits before it answers with the task as it stands.
    pub(crate) blocking_ceiling_seconds: u64,
    /// How long a run may take; then its task is FAILED.
    pub(crate) run_deadline_seconds: u64,
    /// How long an agent may take to notice a cancel.
    pub(crate) cancel_grace_seconds: u64,
    /// How long the runs of a process that is gone wait before another process takes them over.
    pub(crate) lease_seconds: u64,
    /// Whether a message that names only a conversation answers the one task in it that waits.
    pub(crate) resume_by_context: bool,
    /// Whether the messageId makes a send happen once.
    pub(crate) deduplicate_by_message_id: bool,
    /// Whether canceling a canceled task is an error.
    pub(crate) refuse_second_cancel: bool,
    /// Whether the sender's stream ends when the task asks something.
    pub(crate) close_stream_at_input_required: bool,
    /// Whether the sender's stream ends when the task waits for an authorisation.
    pub(crate) close_stream_at_auth_required: bool,
    /// Recent events kept in memory per live task.
    pub(crate) ring_events: usize,
    /// Messages that may wait for a running task.
    pub(crate) max_queued_messages: usize,
    /// Hand-offs from agent to agent in one run.
    pub(crate) max_hand_offs: usize,
}

impl Default for EngineConfig {
    fn default() -> Self {
        let settings = Settings::default();
        Self {
            blocking_ceiling_seconds: settings.blocking_ceiling.as_secs(),
            run_deadline_seconds: settings.run_deadline.as_secs(),
            cancel_grace_seconds: settings.cancel_grace.as_secs(),
            lease_seconds: settings.lease.as_secs(),
            resume_by_context: settings.resume_by_context,
            deduplicate_by_message_id: settings.deduplicate_by_message_id,
            refuse_second_cancel: settings.refuse_second_cancel,
            close_stream_at_input_required: settings.close_stream_at_input_required,
            close_stream_at_auth_required: settings.close_stream_at_auth_required,
            ring_events: settings.ring_events,
            max_queued_messages: settings.max_queued_messages,
            max_hand_offs: settings.max_hand_offs,
        }
    }
}

impl EngineConfig {
    /// The engine's own settings.
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        settings.blocking_ceiling = Duration::from_secs(self.blocking_ceiling_seconds);
        settings.run_deadline = Duration::from_secs(self.run_deadline_seconds);
        settings.cancel_grace = Duration::from_secs(self.cancel_grace_seconds);
        settings.lease = Duration::from_secs(self.lease_seconds);
        settings.resume_by_context = self.resume_by_context;
        settings.deduplicate_by_message_id = self.deduplicate_by_message_id;
        settings.refuse_second_cancel = self.refuse_second_cancel;
        settings.close_stream_at_input_required = self.close_stream_at_input_required;
        settings.close_stream_at_auth_required = self.close_stream_at_auth_required;
        settings.ring_events = self.ring_events;
        settings.max_queued_messages = self.max_queued_messages;
        settings.max_hand_offs = self.max_hand_offs;
        settings
    }
}
