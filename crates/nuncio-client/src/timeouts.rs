//! How long the stages of a call may take.

use std::time::Duration;

/// The limits of a client or of one call; `None` sets no limit.
///
/// The defaults let an agent think for ten minutes before its first byte, and bear two minutes of
/// silence in a stream (any bytes count, keep-alives too). In gRPC the connection keeps itself alive
/// beside its streams, so that silence counts until the first event only. Which limit was hit stands in the
/// error; see [`crate::cause`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection stands, name resolution and TLS included; what the egress policy says
    /// if not set. Belongs to the client: calls share its connections.
    pub connect: Option<Duration>,
    /// From the start until the head of the answer; 10 min.
    pub first_byte: Option<Duration>,
    /// Between two pieces of the answer; 2 min.
    pub idle: Option<Duration>,
    /// From the start to the end of the answer, retries and resumed streams included; none.
    pub total: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: None,
            first_byte: Some(Duration::from_secs(600)),
            idle: Some(Duration::from_secs(120)),
            total: None,
        }
    }
}

impl Timeouts {
    /// The limits of one attempt, when `total` is what is left of the whole.
    pub(crate) fn of_attempt(&self, total: Option<Duration>) -> nuncio_egress::Timeouts {
        let mut limits = nuncio_egress::Timeouts::default();
        limits.first_byte = self.first_byte;
        limits.idle = self.idle;
        limits.total = total;
        limits
    }
}
