//! What an operator can set about the engine.

use std::time::Duration;

/// Settings of the engine; every limit has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// How long a blocking send waits before it answers with the task as it stands; 10 minutes
    /// (OP-SEND-08).
    pub blocking_ceiling: Duration,
    /// How long a run may take; 1 hour. Then its task is FAILED.
    pub run_deadline: Duration,
    /// How long an agent may take to notice a cancel before its run is dropped; 2 seconds.
    pub cancel_grace: Duration,
    /// How long an agent that may answer without a task can think before it gets one; 2 seconds.
    pub draft_limit: Duration,
    /// Whether a message that names only a conversation in which exactly one task waits for input
    /// answers that task; yes.
    pub resume_by_context: bool,
    /// Whether the message id makes a send idempotent when no `Idempotency-Key` is given; yes.
    pub deduplicate_by_message_id: bool,
    /// Whether canceling a canceled task fails instead of giving it back; no (OP-CANC-03).
    pub refuse_second_cancel: bool,
    /// Whether the sender's stream ends when the task waits for input; yes (OP-STRM-04).
    pub close_stream_at_input_required: bool,
    /// Whether the sender's stream ends when the task waits for an authorisation; no.
    pub close_stream_at_auth_required: bool,
    /// Recent events kept in memory per live task for its readers; 256.
    pub ring_events: usize,
    /// Events an agent may emit ahead of the store; 256.
    pub outbox_events: usize,
    /// Events after which a running task gets a new snapshot; 2,000.
    pub snapshot_every: u64,
    /// Messages that may wait for a running task; 100.
    pub max_queued_messages: usize,
    /// Hand-offs from agent to agent in one run; 5.
    pub max_hand_offs: usize,
    /// How deep agents may call agents, those of other servers included; 5.
    pub max_depth: usize,
    /// Webhooks that a task may have; 10.
    pub max_webhooks_per_task: usize,
    /// Whether token and credentials of a webhook are given back to the caller who set them; no:
    /// they can be set and replaced, not read (OP-PGET-02).
    pub return_webhook_secrets: bool,
    /// How long a lease holds without renewal; 15 seconds.
    pub lease: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            blocking_ceiling: Duration::from_secs(600),
            run_deadline: Duration::from_secs(3_600),
            cancel_grace: Duration::from_secs(2),
            draft_limit: Duration::from_secs(2),
            resume_by_context: true,
            deduplicate_by_message_id: true,
            refuse_second_cancel: false,
            close_stream_at_input_required: true,
            close_stream_at_auth_required: false,
            ring_events: 256,
            outbox_events: 256,
            snapshot_every: 2_000,
            max_queued_messages: 100,
            max_hand_offs: 5,
            max_depth: 5,
            max_webhooks_per_task: 10,
            return_webhook_secrets: false,
            lease: Duration::from_secs(15),
        }
    }
}
