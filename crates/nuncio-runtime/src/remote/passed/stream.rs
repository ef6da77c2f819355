//! The events of an agent elsewhere, passed on one by one.

use futures_util::{StreamExt as _, stream};
use nuncio_protocol::{Call, ContextId, Event, EventStream, Result, StreamResponse, TaskId};

use super::PassThrough;

/// A stream of events to one caller; dropping it ends the exchange with the agent, whose task goes on.
struct Checked {
    passed: PassThrough,
    call: Call,
    events: EventStream,
    /// What the last event was about, which is the caller's.
    about: About,
}

/// What an event is about.
#[derive(Clone, Default, PartialEq)]
struct About {
    task: Option<TaskId>,
    context: Option<ContextId>,
}

impl PassThrough {
    /// The events of a stream, each told once what it is about is known to be the caller's. What is
    /// wrong with the first one is an error of the operation.
    pub(super) async fn checked(&self, call: Call, events: EventStream) -> Result<EventStream> {
        let mut checked = Checked {
            passed: self.clone(),
            call,
            events,
            about: About::default(),
        };
        let first = match checked.next().await {
            Some(first) => first?,
            None => return Ok(Box::pin(stream::empty())),
        };
        let rest = stream::unfold(Some(checked), |checked| async move {
            let mut checked = checked?;
            let event = checked.next().await?;
            let open = event.is_ok().then_some(checked);
            Some((event, open))
        });
        Ok(Box::pin(stream::iter([Ok(first)]).chain(rest)))
    }
}

impl Checked {
    async fn next(&mut self) -> Option<Result<Event>> {
        let event = self.events.next().await?;
        Some(match event {
            Ok(event) => self.check(event).await,
            Err(error) => Err(self.passed.told(error)),
        })
    }

    async fn check(&mut self, event: Event) -> Result<Event> {
        let about = About::of(event.response());
        if about != self.about {
            let (task, context) = (about.task.as_ref(), about.context.as_ref());
            self.passed.accept(&self.call, task, context).await?;
            self.about = about;
        }
        Ok(event)
    }
}

impl About {
    fn of(response: &StreamResponse) -> Self {
        let (task, context) = match response {
            StreamResponse::Task(task) => (Some(&task.id), task.context_id.as_ref()),
            StreamResponse::Message(said) => (said.task_id.as_ref(), said.context_id.as_ref()),
            StreamResponse::StatusUpdate(told) => (Some(&told.task_id), Some(&told.context_id)),
            StreamResponse::ArtifactUpdate(told) => (Some(&told.task_id), Some(&told.context_id)),
            _ => (None, None),
        };
        Self {
            task: task.cloned(),
            context: context.cloned(),
        }
    }
}
