//! What a server tells of each operation: a span, from its request to the end of its answer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use nuncio_protocol::{
    A2aError, Binding, Call, Clock, Event, EventStream, Ids, OperationKind, Outcome, Result,
    SendMessageResponse, SpanRecord, SpanRole, SpanSink, StreamResponse, Task, TraceContext,
};

/// Tells of every operation that a server has answered; see [`crate::Server::with_spans`].
#[derive(Debug)]
pub(crate) struct Spans {
    pub(crate) sink: Arc<dyn SpanSink>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The span of an operation; told when it is dropped.
#[derive(Debug)]
pub(crate) struct OperationSpan {
    spans: Arc<Spans>,
    record: Option<SpanRecord>,
}

impl OperationSpan {
    /// Begins the span of a call, and makes it the place where the call stands from now on.
    pub(crate) fn begin(
        spans: &Arc<Spans>,
        ids: &dyn Ids,
        call: &mut Call,
        kind: OperationKind,
        binding: Binding,
    ) -> Self {
        let context = call
            .trace
            .map_or_else(|| TraceContext::new(ids), |caller| caller.child(ids));
        let mut record = SpanRecord::new(context, kind.as_str(), spans.clock.now());
        record.parent = call.trace.map(|caller| caller.span_id);
        record.role = SpanRole::Server;
        record.set("rpc.method", kind.as_str());
        record.set("a2a.binding", binding.as_str());
        record.set("a2a.protocol.version", call.version.as_str());
        call.trace = Some(context);
        Self {
            spans: Arc::clone(spans),
            record: Some(record).filter(|record| record.context.sampled),
        }
    }

    fn set(&mut self, name: &str, value: &str) {
        if let Some(record) = &mut self.record {
            record.set(name, value);
        }
    }

    /// Tells what the operation was about.
    pub(crate) fn agent(&mut self, agent: &str) {
        self.set("gen_ai.agent.name", agent);
    }

    /// Tells why it failed: the kind only, as the words may be the caller's.
    pub(crate) fn fail(&mut self, error: &A2aError) {
        let kind = format!("{:?}", error.kind);
        self.set("error.type", &kind);
        if let Some(record) = &mut self.record {
            record.error = Some(kind);
        }
    }

    /// Tells what came of it, and stays with a stream until that ends.
    pub(crate) fn over(mut self, outcome: Outcome) -> Outcome {
        match &outcome {
            Outcome::Sent(SendMessageResponse::Task(task)) | Outcome::Task(task) => self.task(task),
            _ => {}
        }
        match outcome {
            Outcome::Stream(events) => Outcome::Stream(Box::pin(Traced { events, span: self })),
            outcome => outcome,
        }
    }

    fn task(&mut self, task: &Task) {
        self.set("a2a.task.id", task.id.as_str());
        self.set("a2a.task.state", task.status.state.as_str());
        if let Some(context) = &task.context_id {
            self.set("gen_ai.conversation.id", context.as_str());
        }
    }
}

impl Drop for OperationSpan {
    fn drop(&mut self) {
        if let Some(mut record) = self.record.take() {
            record.ended = self.spans.clock.now();
            self.spans.sink.ended(record);
        }
    }
}

/// A stream that tells of itself when it ends.
struct Traced {
    events: EventStream,
    span: OperationSpan,
}

impl Stream for Traced {
    type Item = Result<Event>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.events.as_mut().poll_next(cx);
        match &polled {
            Poll::Ready(Some(Ok(event))) => match event.response() {
                StreamResponse::Task(task) => self.span.task(task),
                StreamResponse::StatusUpdate(update) => {
                    let state = update.status.state.as_str();
                    self.span.set("a2a.task.state", state);
                }
                _ => {}
            },
            Poll::Ready(Some(Err(error))) => self.span.fail(error),
            Poll::Ready(None) | Poll::Pending => {}
        }
        polled
    }
}
