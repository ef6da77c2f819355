//! Telling a collector of spans: OTLP over HTTP, in batches, beside the work and never in its way.

mod otlp;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use nuncio_egress::{Egress, EgressError, EgressPolicy, EgressRequest, Timeouts};
use nuncio_protocol::{SpanRecord, SpanSink};
use prost::Message as _;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::config::Collector;

/// Spans that may wait; further ones are dropped and counted.
const QUEUE: usize = 8_192;

/// Spans in one request.
const BATCH: usize = 512;

/// How long a span waits for others.
const DELAY: Duration = Duration::from_millis(500);

/// How long a request may take.
const LIMIT: Duration = Duration::from_secs(10);

/// How often a request is made.
const TRIES: u32 = 3;

/// Takes spans for a collector.
#[derive(Debug)]
pub(crate) struct Exporter {
    queue: Sender<SpanRecord>,
    dropped: Arc<AtomicU64>,
}

impl SpanSink for Exporter {
    fn ended(&self, span: SpanRecord) {
        if self.queue.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Brings what an [`Exporter`] takes to the collector.
#[derive(Debug)]
pub(crate) struct Carrier {
    queue: Receiver<SpanRecord>,
    dropped: Arc<AtomicU64>,
    egress: Egress,
    url: Url,
    collector: Collector,
}

/// The two ends of the way to a collector. It is the operator's own, on any network.
///
/// # Errors
/// If its address cannot be read or the HTTP client cannot be set up.
pub(crate) fn exporter(collector: Collector) -> Result<(Exporter, Carrier), String> {
    let egress = Egress::new(EgressPolicy::open()).map_err(|error| error.to_string())?;
    let url = egress.check_url(&collector.url);
    let url = url.map_err(|why| format!("{}: {why}", collector.url))?;
    let (sender, receiver) = mpsc::channel(QUEUE);
    let dropped = Arc::<AtomicU64>::default();
    let exporter = Exporter {
        queue: sender,
        dropped: Arc::clone(&dropped),
    };
    let carrier = Carrier {
        queue: receiver,
        dropped,
        egress,
        url,
        collector,
    };
    Ok((exporter, carrier))
}

impl Carrier {
    /// Carries until `shutdown` fires, then what is left.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                biased;
                taken = self.queue.recv_many(&mut batch, BATCH) => {
                    if taken == 0 {
                        return;
                    }
                }
                () = shutdown.cancelled() => break,
            }
            if batch.len() < BATCH {
                tokio::select! {
                    () = tokio::time::sleep(DELAY) => {}
                    () = shutdown.cancelled() => {}
                }
                while batch.len() < BATCH
                    && let Ok(span) = self.queue.try_recv()
                {
                    batch.push(span);
                }
            }
            self.carry(&mut batch).await;
        }
        self.queue.close();
        while self.queue.recv_many(&mut batch, BATCH).await > 0 {
            if !self.carry(&mut batch).await {
                return;
            }
        }
    }

    /// Whether the collector took them; what it does not take is lost.
    async fn carry(&self, batch: &mut Vec<SpanRecord>) -> bool {
        let spans = std::mem::take(batch);
        let count = spans.len();
        let body = otlp::request(&self.collector.service_name, spans).encode_to_vec();
        for attempt in 1..=TRIES {
            match self.post(body.clone()).await {
                Ok(status) if status.is_success() => {
                    self.tell_dropped();
                    return true;
                }
                Ok(status) if !may_change(status) || attempt == TRIES => {
                    tracing::warn!(spans = count, %status, "the collector does not take spans");
                    return false;
                }
                Err(error) if attempt == TRIES => {
                    tracing::warn!(spans = count, %error, "the collector is not reached");
                    return false;
                }
                Ok(_) | Err(_) => tokio::time::sleep(DELAY * attempt).await,
            }
        }
        false
    }

    async fn post(&self, body: Vec<u8>) -> Result<StatusCode, EgressError> {
        let protobuf = HeaderValue::from_static("application/x-protobuf");
        let mut request = EgressRequest::post(self.url.clone(), body)
            .timeouts(Timeouts::total(LIMIT))
            .header(CONTENT_TYPE, protobuf);
        for (name, value) in &self.collector.headers {
            request = request.header(name.clone(), value.clone());
        }
        let response = self.egress.send(request).await?;
        let status = response.status();
        let _ = response.bytes_up_to(64 << 10).await;
        Ok(status)
    }

    fn tell_dropped(&self) {
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(
                spans = dropped,
                "spans came faster than the collector takes them"
            );
        }
    }
}

fn may_change(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
}
