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

#[cfg(test)]
mod tests {
    use nuncio_protocol::{
        AgentCapabilities, AgentExtension, Artifact, Message, Outcome, Part, Task,
    };
    use serde_json::{Value, json};

    use super::Unasked;

    /// A map with data of two extensions and of none.
    fn data() -> Option<nuncio_protocol::Metadata> {
        let data = json!({"urn:a/x": 1, "urn:b/x": 2, "own": 3});
        data.as_object().cloned()
    }

    fn capabilities() -> AgentCapabilities {
        let extensions = ["urn:a", "urn:b"].map(|uri| {
            let mut extension = AgentExtension::default();
            extension.uri = uri.to_owned();
            extension
        });
        let mut capabilities = AgentCapabilities::default();
        capabilities.extensions = extensions.to_vec();
        capabilities
    }

    /// BR-122, EXT-05: at every place of a task, but for what the user wrote.
    #[test]
    fn data_of_extensions_that_were_not_asked_for_is_left_out() {
        let mut part = Part::text("x");
        part.metadata = data();
        let mut artifact = Artifact::new("a", vec![part.clone()]);
        (artifact.metadata, artifact.extensions) = (data(), vec!["urn:a".into(), "urn:b".into()]);
        let mut said = Message::agent("m", vec![part.clone()]);
        (said.metadata, said.extensions) = (data(), vec!["urn:b".into()]);
        let mut asked = Message::user("u", vec![part]);
        asked.metadata = data();
        let mut task = Task::default();
        task.metadata = data();
        task.artifacts = vec![artifact];
        task.status.message = Some(said.clone());
        task.history = vec![asked.clone(), said];
        let unasked = Unasked::of(&capabilities(), &["urn:a".to_owned()]).unwrap();
        let mut outcome = Outcome::Task(task);
        unasked.take_from(&mut outcome);
        let Outcome::Task(task) = outcome else {
            panic!("another outcome");
        };
        assert_eq!(task.history[0], asked, "the user's own words");
        let mut told = serde_json::to_value(&task).unwrap();
        told["history"][0] = Value::Null;
        let text = told.to_string();
        assert!(!text.contains("urn:b"), "{text}");
        assert_eq!(text.matches("urn:a/x").count(), 7, "{text}");
        assert_eq!(text.matches("own").count(), 7, "{text}");
    }

    #[test]
    fn nothing_is_done_where_all_was_asked_for() {
        let asked = ["urn:a".to_owned(), "urn:b".to_owned()];
        assert!(Unasked::of(&capabilities(), &asked).is_none());
        assert!(Unasked::of(&AgentCapabilities::default(), &[]).is_none());
    }
}
