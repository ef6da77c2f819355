//! Playing events: from what another program says to what the task becomes.

use nuncio_engine::{EmitError, Outcome, Pause, RunCx};
use nuncio_protocol::{Message, Part};
use serde_json::{Map, Value};

use super::{Event, EventError};

/// Why a turn ends in failure.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The program says so, in these words.
    Failed(String),
    /// An event breaks a rule of the protocol, or comes too late.
    Refused(EmitError),
}

impl From<EmitError> for Stop {
    fn from(error: EmitError) -> Self {
        Self::Refused(error)
    }
}

/// One message being answered by another program.
pub(crate) struct Turn<'a> {
    pub(crate) cx: &'a RunCx,
    /// Whether every event must name its task.
    pub(crate) named: bool,
}

impl Turn<'_> {
    /// Reads one event.
    pub(crate) fn read(&self, bytes: &[u8]) -> Result<Event, EventError> {
        Event::read(bytes, self.cx.task().as_str(), self.named, || {
            self.cx.next_id()
        })
    }

    /// The same, of an object that has been read.
    pub(crate) fn event(&self, object: Map<String, Value>) -> Result<Event, EventError> {
        Event::from_object(object, self.cx.task().as_str(), self.named, || {
            self.cx.next_id()
        })
    }

    /// Does what an event says; gives the outcome if it ends the run.
    ///
    /// # Errors
    /// [`Stop`].
    pub(crate) async fn play(&self, event: Event) -> Result<Option<Outcome>, Stop> {
        match event {
            Event::Status { text } => self.cx.status(text).await?,
            Event::Text { delta } if delta.is_empty() => {}
            Event::Text { delta } => self.cx.text(delta).await?,
            Event::Artifact {
                artifact,
                append,
                last,
            } => self.cx.chunk(artifact, append, last).await?,
            Event::Checkpoint { value } => self.cx.checkpoint(&value)?,
            Event::Ask { text, schema } => {
                let mut pause = Pause::input(self.say(text));
                pause.schema = schema;
                return Ok(Some(Outcome::Paused(pause)));
            }
            Event::Auth { text, scheme, url } => {
                let pause = Pause::auth(self.say(text), scheme, url);
                return Ok(Some(Outcome::Paused(pause)));
            }
            Event::Reject { reason } => return Ok(Some(Outcome::Rejected(reason))),
            Event::Fail { message } => return Err(Stop::Failed(message)),
            Event::Done { text: None } => return Ok(Some(Outcome::Done)),
            Event::Done { text: Some(text) } => return Ok(Some(Outcome::Said(self.say(text)))),
        }
        Ok(None)
    }

    fn say(&self, text: String) -> Message {
        self.cx.message(vec![Part::text(text)])
    }
}
