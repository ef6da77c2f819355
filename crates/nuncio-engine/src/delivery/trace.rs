//! Calls of webhooks as spans of the task's trace.

use nuncio_protocol::{PushConfigId, SpanRecord, SpanRole, Task, TaskId, TraceContext};
use nuncio_store::{CallOutcome, Scope, StoreError};

use super::call::{Answer, Called};
use crate::engine::Core;

/// The trace that a task belongs to, and where its first message stood in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskTrace {
    context: TraceContext,
    parent: Option<[u8; 8]>,
}

impl TaskTrace {
    /// That of a task whose caller names none.
    pub(super) fn own(task: &TaskId) -> Self {
        Self {
            context: TraceContext::of_task(task),
            parent: None,
        }
    }
}

impl Core {
    pub(super) async fn task_trace(
        &self,
        scope: &Scope,
        task: &TaskId,
    ) -> Result<TaskTrace, StoreError> {
        let first = self.first_trace(scope, task).await?;
        Ok(first.map_or_else(
            || TaskTrace::own(task),
            |context| TaskTrace {
                context,
                parent: Some(context.span_id),
            },
        ))
    }

    /// Begins the span of a call.
    pub(super) fn push_span(
        &self,
        trace: &TaskTrace,
        task: &Task,
        webhook: &PushConfigId,
    ) -> SpanRecord {
        let context = trace.context.child(&*self.environment.ids);
        let mut span = SpanRecord::new(context, "push_notification", self.now());
        span.parent = trace.parent;
        span.role = SpanRole::Producer;
        span.set("a2a.task.id", task.id.as_str());
        span.set("a2a.task.state", task.status.state.as_str());
        span.set("a2a.push.config.id", webhook.as_str());
        if let Some(context) = &task.context_id {
            span.set("gen_ai.conversation.id", context.as_str());
        }
        span
    }

    pub(super) fn end_push_span(&self, mut span: SpanRecord, attempt: u32, called: &Called) {
        let Some(sink) = self.spans.get().filter(|_| span.context.sampled) else {
            return;
        };
        span.ended = self.now();
        span.set("a2a.push.attempt", attempt);
        if let CallOutcome::Answered(status) = called.outcome {
            span.set("http.response.status_code", status);
        }
        if !matches!(called.answer, Answer::Taken) {
            span.error = Some("the webhook did not take it".to_owned());
        }
        sink.ended(span);
    }
}
