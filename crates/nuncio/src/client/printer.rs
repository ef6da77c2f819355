//! Writing results to stdout: fields and blocks for people, the protocol's JSON for programs.

use nuncio_protocol::{Event, ListTasksResponse, SendMessageResponse, StreamResponse, Task};
use serde::Serialize;

use super::escape::escape_json;
use super::hints::Hints;
use super::options::OutputFormat;
use super::state::{is_resting, short};
use super::text::Text;
use crate::outcome::{Outcome, print, warn};

/// How results are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    pub(crate) format: OutputFormat,
    /// Whether events are written as they come.
    pub(crate) stream: bool,
    pub(crate) verbose: bool,
}

impl Printer {
    pub(crate) fn new(format: OutputFormat, stream: bool, verbose: bool) -> Self {
        Self {
            format,
            stream,
            verbose,
        }
    }

    pub(crate) fn is_json(self) -> bool {
        self.format == OutputFormat::Json
    }

    /// Writes a value as one line of JSON.
    pub(crate) fn json<T: Serialize>(self, value: &T) -> Outcome {
        let json = nuncio_protocol::json::encode(value);
        Ok(print(&(escape_json(&json) + "\n"))?)
    }

    /// Writes text that has been made ready.
    pub(crate) fn text(self, text: Text) -> Outcome {
        Ok(print(&text.finish())?)
    }

    /// Writes what a message has brought.
    pub(crate) fn sent(self, sent: &SendMessageResponse, hints: &Hints) -> Outcome {
        if self.is_json() {
            return self.json(sent);
        }
        match sent {
            SendMessageResponse::Task(task) => self.task_text(task, hints),
            SendMessageResponse::Message(message) => {
                let mut text = Text::new(self.verbose);
                text.reply(message);
                self.text(text)
            }
            _ => Ok(()),
        }
    }

    /// Writes a task.
    pub(crate) fn task(self, task: &Task, hints: &Hints) -> Outcome {
        if self.is_json() {
            self.json(task)
        } else {
            self.task_text(task, hints)
        }
    }

    fn task_text(self, task: &Task, hints: &Hints) -> Outcome {
        let mut text = Text::new(self.verbose);
        text.task(task);
        text.resume(task, hints);
        self.text(text)
    }

    /// Writes an event of a stream.
    pub(crate) fn event(self, event: &Event, task: Option<&Task>, hints: &Hints) -> Outcome {
        if self.is_json() {
            return Ok(print(&(escape_json(event.json()) + "\n"))?);
        }
        let mut text = Text::new(self.verbose);
        text.event(event.response());
        let ended = event.state().is_some_and(is_resting);
        if let (Some(task), true) = (task, ended) {
            if !matches!(event.response(), StreamResponse::Task(_)) {
                text.identifiers(task);
            }
            text.resume(task, hints);
        }
        self.text(text)
    }

    /// Writes a page of tasks.
    pub(crate) fn page(self, page: &ListTasksResponse) -> Outcome {
        match (self.is_json(), self.stream) {
            (true, true) => page.tasks.iter().try_for_each(|task| self.json(task)),
            (true, false) => self.json(page),
            (false, _) => {
                let mut text = Text::new(self.verbose);
                for task in &page.tasks {
                    text.task(task);
                }
                text.page(page);
                self.text(text)
            }
        }
    }

    /// Names an end that is no success, and a pause, on stderr.
    pub(crate) fn warn_about(self, task: &Task, hints: &Hints) -> Outcome {
        use nuncio_protocol::TaskState::{AuthRequired, Canceled, Failed, InputRequired, Rejected};
        let state = task.status.state;
        let said = task.status.message.as_ref().map(|message| message.text());
        let said = said.filter(|said| !said.is_empty()).map(|said| {
            format!(
                ": {}",
                said.split_whitespace().collect::<Vec<_>>().join(" ")
            )
        });
        let said = said.unwrap_or_default();
        let next = match state {
            Failed | Rejected | Canceled => format!("the task has ended as {}{said}", short(state)),
            InputRequired => format!(
                "the task waits for input{said}\n  answer with: {}",
                hints.answer(task.id.as_str())
            ),
            AuthRequired => format!(
                "the task waits for an authorisation{said}\n  then: {}",
                hints.wait(task.id.as_str())
            ),
            _ => return Ok(()),
        };
        Ok(warn(&format!("warning: {}\n", super::escape(&next)))?)
    }
}
