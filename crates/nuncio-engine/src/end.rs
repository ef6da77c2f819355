//! How turns end, in terms of events.

use std::any::Any;

use nuncio_protocol::{AgentId, Artifact, Message, Part, TaskId, TaskState};

use crate::outbox::{Batch, Emitted};
use crate::run::Returned;
use crate::{Outcome, Pause, PauseReason, RunCx};

/// How a turn of a run ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The task is completed, perhaps with these words.
    Done(Option<Message>),
    /// An answer: without a task if none is stored yet.
    Reply(Message),
    /// The task waits.
    Paused(Pause),
    /// The task ends in this state with these words.
    Stopped(TaskState, String),
    /// Another agent goes on.
    HandOff(AgentId, Message),
    /// Nothing more can be written: another process has the task, or this one shuts down.
    Lost,
}

impl End {
    /// What the agent's return means.
    pub(crate) fn of(result: Returned, task: &TaskId) -> Self {
        match result {
            Ok(Ok(Outcome::Done)) => Self::Done(None),
            Ok(Ok(Outcome::Said(message))) => Self::Done(Some(message)),
            Ok(Ok(Outcome::Reply(message))) => Self::Reply(message),
            Ok(Ok(Outcome::Paused(pause))) => Self::Paused(pause),
            Ok(Ok(Outcome::Rejected(reason))) => Self::Stopped(TaskState::Rejected, reason),
            Ok(Ok(Outcome::HandOff { agent, message })) => Self::HandOff(agent, message),
            Ok(Err(error)) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(task.id = %task, %error, cause, "the agent failed");
                Self::Stopped(TaskState::Failed, error.message().to_owned())
            }
            Err(panic) => {
                let text = panic_text(panic.as_ref());
                tracing::error!(task.id = %task, panic = text, "the agent panicked");
                Self::Stopped(
                    TaskState::Failed,
                    "the agent stopped unexpectedly".to_owned(),
                )
            }
        }
    }

    /// Adds the events of this end to what the turn has emitted.
    ///
    /// With `more` to answer, the task is not completed yet.
    pub(crate) fn finish(self, batch: &mut Batch, cx: &RunCx, more: bool) {
        let said = |text: String| (!text.is_empty()).then(|| cx.message(vec![Part::text(text)]));
        match self {
            Self::Done(None) if more => {}
            Self::Done(message) => {
                let state = match more {
                    true => TaskState::Working,
                    false => TaskState::Completed,
                };
                let message = message.map(|message| of_this_task(message, cx));
                batch.events.push(Emitted::Status(state, message));
            }
            Self::Reply(message) => {
                let mut artifact = Artifact::new(cx.next_id(), message.parts);
                artifact.metadata = message.metadata;
                artifact.extensions = message.extensions;
                if !artifact.parts.is_empty() {
                    batch.events.push(Emitted::Artifact {
                        artifact,
                        append: false,
                        last_chunk: true,
                    });
                }
                Self::Done(None).finish(batch, cx, more);
            }
            Self::Paused(pause) => {
                let state = match pause.reason {
                    PauseReason::Auth { .. } => TaskState::AuthRequired,
                    PauseReason::Input | PauseReason::Approval { .. } | PauseReason::External => {
                        TaskState::InputRequired
                    }
                };
                let prompt = of_this_task(pause.prompt, cx);
                batch.events.push(Emitted::Status(state, Some(prompt)));
            }
            Self::Stopped(state, text) => batch.events.push(Emitted::Status(state, said(text))),
            Self::HandOff(..) | Self::Lost => {}
        }
    }

    /// Whether queued messages are answered after this end.
    pub(crate) fn goes_on(&self) -> bool {
        matches!(self, Self::Done(_) | Self::Reply(_) | Self::Paused(_))
    }
}

/// The message, naming its task and conversation whatever the agent has put there.
fn of_this_task(mut message: Message, cx: &RunCx) -> Message {
    message.context_id = Some(cx.context().clone());
    message.task_id = Some(cx.task().clone());
    message
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no text")
}
