//! Extension data reaches only those who asked for the extension (BR-122).

use futures_util::StreamExt as _;
use nuncio_protocol::{
    AgentCapabilities, Artifact, Event, EventStream, Message, Metadata, Outcome, Part, Role,
    SendMessageResponse, StreamResponse, Task, TaskStatus,
};

/// The extensions that an agent declares and a caller did not name.
#[derive(Clone, Debug)]
pub(crate) struct Unasked(Vec<String>);

impl Unasked {
    /// `None` if there is none, which is the rule.
    pub(crate) fn of(card: &AgentCapabilities, asked: &[String]) -> Option<Self> {
        let declared = card.extensions.iter().map(|extension| &extension.uri);
        let unasked: Vec<String> = declared
            .filter(|uri| !asked.contains(uri))
            .cloned()
            .collect();
        (!unasked.is_empty()).then_some(Self(unasked))
    }

    /// Takes their data out of an answer.
    pub(crate) fn take_from(self, outcome: &mut Outcome) {
        match outcome {
            Outcome::Sent(SendMessageResponse::Task(task)) | Outcome::Task(task) => self.task(task),
            Outcome::Sent(SendMessageResponse::Message(message)) => self.message(message),
            Outcome::Tasks(page) => page.tasks.iter_mut().for_each(|task| self.task(task)),
            Outcome::Stream(events) => {
                let all: EventStream = Box::pin(futures_util::stream::empty());
                let events = std::mem::replace(events, all);
                *outcome = Outcome::Stream(Box::pin(
                    events.map(move |item| item.map(|event| self.event(&event))),
                ));
            }
            _ => {}
        }
    }

    fn event(&self, event: &Event) -> Event {
        let mut response = event.response().clone();
        match &mut response {
            StreamResponse::Task(task) => self.task(task),
            StreamResponse::Message(message) => self.message(message),
            StreamResponse::StatusUpdate(update) => {
                self.status(&mut update.status);
                self.metadata(&mut update.metadata);
            }
            StreamResponse::ArtifactUpdate(update) => {
                self.artifact(&mut update.artifact);
                self.metadata(&mut update.metadata);
            }
            _ => {}
        }
        Event::new(event.position, response)
    }

    fn task(&self, task: &mut Task) {
        self.status(&mut task.status);
        task.artifacts.iter_mut().for_each(|a| self.artifact(a));
        task.history.iter_mut().for_each(|m| self.message(m));
        self.metadata(&mut task.metadata);
    }

    fn status(&self, status: &mut TaskStatus) {
        if let Some(message) = &mut status.message {
            self.message(message);
        }
    }

    /// What users wrote themselves stays as they wrote it.
    fn message(&self, message: &mut Message) {
        if message.role == Role::User {
            return;
        }
        self.parts(&mut message.parts);
        self.metadata(&mut message.metadata);
        message.extensions.retain(|uri| !self.0.contains(uri));
    }

    fn artifact(&self, artifact: &mut Artifact) {
        self.parts(&mut artifact.parts);
        self.metadata(&mut artifact.metadata);
        artifact.extensions.retain(|uri| !self.0.contains(uri));
    }

    fn parts(&self, parts: &mut [Part]) {
        parts
            .iter_mut()
            .for_each(|p| self.metadata(&mut p.metadata));
    }

    /// Their data stands under keys that begin with their URI (EXT-05).
    fn metadata(&self, metadata: &mut Option<Metadata>) {
        let Some(map) = metadata else { return };
        let before = map.len();
        map.retain(|key, _| !self.0.iter().any(|uri| key.starts_with(uri.as_str())));
        if map.is_empty() && before > 0 {
            *metadata = None;
        }
    }
}
