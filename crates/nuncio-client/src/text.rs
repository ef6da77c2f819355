//! The text of what an agent said, each word once (BR-028, BR-058).

use nuncio_protocol::{StreamResponse, Task};

/// The text of a task's result: its artifacts, one below the other.
///
/// Without any text in artifacts it is the word that came with the status, since some agents put
/// their answer there only.
pub fn task_text(task: &Task) -> String {
    let artifacts: Vec<String> = task
        .artifacts
        .iter()
        .map(nuncio_protocol::Artifact::text)
        .filter(|text| !text.is_empty())
        .collect();
    if !artifacts.is_empty() {
        return artifacts.join("\n");
    }
    let word = task.status.message.as_ref();
    word.map(nuncio_protocol::Message::text).unwrap_or_default()
}

/// What an event does to the text shown so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextChange {
    /// Nothing.
    None,
    /// This is added at the end.
    Append(String),
    /// The text is now this one.
    Replace(String),
}

/// The text of an exchange as it grows, for showing it live.
///
/// Shows artifacts, and a message that makes no task; words that come with a status are
/// commentary and are left to whoever shows statuses.
#[derive(Debug, Clone, Default)]
pub struct TextView {
    task: Option<Task>,
    shown: String,
}

impl TextView {
    /// A view that shows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// All that is shown.
    pub fn text(&self) -> &str {
        &self.shown
    }

    /// The task as the events tell it.
    pub fn task(&self) -> Option<&Task> {
        self.task.as_ref()
    }

    /// Takes an event in and says how the text changes; a repeated snapshot changes nothing.
    pub fn apply(&mut self, response: &StreamResponse) -> TextChange {
        match response {
            StreamResponse::Message(message) => return self.show(message.text()),
            StreamResponse::Task(task) => self.task = Some(task.clone()),
            StreamResponse::StatusUpdate(update) => {
                self.task_of(&update.task_id).apply_leniently(response);
                return TextChange::None;
            }
            StreamResponse::ArtifactUpdate(update) => {
                let id = &update.artifact.artifact_id;
                let task = self.task_of(&update.task_id);
                let continues =
                    update.append && task.artifacts.last().is_some_and(|a| a.artifact_id == *id);
                let had_text = task.artifacts.last().is_some_and(|a| !a.text_is_empty());
                task.apply_leniently(response);
                // The common case, kept linear: a piece of the last artifact.
                if continues && had_text {
                    return self.append(update.artifact.text());
                }
            }
            _ => return TextChange::None,
        }
        let whole = self.task.as_ref().map(artifacts_text);
        self.show(whole.unwrap_or_default())
    }

    fn task_of(&mut self, id: &nuncio_protocol::TaskId) -> &mut Task {
        self.task.get_or_insert_with(|| {
            let mut task = Task::default();
            task.id = id.clone();
            task
        })
    }

    fn append(&mut self, text: String) -> TextChange {
        if text.is_empty() {
            return TextChange::None;
        }
        self.shown.push_str(&text);
        TextChange::Append(text)
    }

    fn show(&mut self, whole: String) -> TextChange {
        match whole.strip_prefix(self.shown.as_str()) {
            Some(rest) => {
                let rest = rest.to_owned();
                self.append(rest)
            }
            None => {
                self.shown.clone_from(&whole);
                TextChange::Replace(whole)
            }
        }
    }
}

fn artifacts_text(task: &Task) -> String {
    let texts = task.artifacts.iter().map(nuncio_protocol::Artifact::text);
    let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

trait HasText {
    fn text_is_empty(&self) -> bool;
}

impl HasText for nuncio_protocol::Artifact {
    fn text_is_empty(&self) -> bool {
        self.parts
            .iter()
            .filter_map(nuncio_protocol::Part::as_text)
            .all(str::is_empty)
    }
}
