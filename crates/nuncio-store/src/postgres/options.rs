//! What may be set.

use std::time::Duration;

/// How a [`super::PostgresStore`] works.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// How many connections write tasks; at least 1, 4 by default. The writes of one task go
    /// through one of them.
    pub writers: usize,
    /// How many connections read; at least 1, 4 by default.
    pub readers: usize,
    /// How many writes share a commit at most; 256 by default.
    pub max_batch: usize,
    /// How many writes may wait for each writer before callers wait to queue; 4,096 by default.
    pub max_waiting: usize,
    /// Where NATS is, if processes are to tell each other of their commits there instead of by
    /// NOTIFY: `nats://…` or `tls://…`, several with commas between them; absent by default. While it
    /// is away, they find changes of each other within a second.
    pub wake_ups: Option<String>,
    /// How long making a connection may take, to each address of the host; 5 seconds by default.
    /// `connect_timeout` of the URL goes first.
    pub connect_timeout: Duration,
    /// How long the database may work on a statement before it is given up as
    /// [`crate::StoreError::Unavailable`]; 10 seconds by default. A call that has no answer a half
    /// longer than that cuts its connection: the database is gone.
    pub statement_timeout: Duration,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            writers: 4,
            readers: 4,
            max_batch: 256,
            max_waiting: 4_096,
            wake_ups: None,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(10),
        }
    }
}
