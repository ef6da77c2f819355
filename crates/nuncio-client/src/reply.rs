//! What a question brought.

use nuncio_protocol::{ContextId, Message, Task, TaskId, TaskState};

use crate::text::task_text;

/// The answer to [`crate::Conversation::ask`].
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The agent answered at once, without a task.
    Message(Message),
    /// The task has ended, or waits for somebody; its state says which.
    Task(Task),
    /// The wait was given up; this is the task as it was seen last. It goes on, and
    /// [`crate::Conversation::wait`] waits further.
    StillRunning(Task),
}

impl Reply {
    /// The task, if there is one.
    pub fn task(&self) -> Option<&Task> {
        match self {
            Self::Message(_) => None,
            Self::Task(task) | Self::StillRunning(task) => Some(task),
        }
    }

    /// The task's id.
    pub fn task_id(&self) -> Option<&TaskId> {
        self.task().map(|task| &task.id)
    }

    /// The conversation's id, if the agent gave one.
    pub fn context_id(&self) -> Option<&ContextId> {
        match self {
            Self::Message(message) => message.context_id.as_ref(),
            Self::Task(task) | Self::StillRunning(task) => task.context_id.as_ref(),
        }
    }

    /// The state of the task.
    pub fn state(&self) -> Option<TaskState> {
        self.task().map(|task| task.status.state)
    }

    /// The text of the answer: the message's, or the result of the task ([`task_text`]).
    pub fn text(&self) -> String {
        match self {
            Self::Message(message) => message.text(),
            Self::Task(task) | Self::StillRunning(task) => task_text(task),
        }
    }

    /// What the agent wants to know, or needs a permission for, if it waits (BR-067).
    pub fn question(&self) -> Option<&Message> {
        question_of(self.task()?)
    }
}

/// The question of a task that waits: the message of its status, whatever artifacts it has.
pub(crate) fn question_of(task: &Task) -> Option<&Message> {
    let waits = task.status.state.is_interrupted();
    task.status.message.as_ref().filter(|_| waits)
}
