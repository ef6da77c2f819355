//! Text output: `Label: value` lines, and blocks for what has more than one line.
//!
//! A block is its label on a line of its own, its lines indented by two blanks, and an empty line.
//! So no line of an agent's text can be mistaken for a field, and no control character of it
//! reaches a terminal.

use std::fmt::Write as _;

use nuncio_protocol::{
    Artifact, ListTasksResponse, Message, Part, PartContent, Role, StreamResponse, Task,
};

use super::escape::escape;
use super::hints::Hints;
use super::state::{is_resting, short};

/// Output in the making.
#[derive(Debug, Default)]
pub(crate) struct Text {
    out: String,
    verbose: bool,
}

impl Text {
    pub(crate) fn new(verbose: bool) -> Self {
        Self {
            out: String::new(),
            verbose,
        }
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }

    /// One field; a value of several lines becomes a block.
    pub(crate) fn field(&mut self, label: &str, value: &str) {
        let value = escape(value);
        if value.contains('\n') {
            self.raw_block(label, &value);
        } else {
            let _ = writeln!(self.out, "{label}: {}", value.trim_end());
        }
    }

    /// A field, unless there is nothing to say.
    pub(crate) fn optional(&mut self, label: &str, value: Option<&str>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.field(label, value);
        }
    }

    /// A block, whatever its length.
    pub(crate) fn block(&mut self, label: &str, content: &str) {
        self.raw_block(label, &escape(content));
    }

    fn raw_block(&mut self, label: &str, escaped: &str) {
        let _ = writeln!(self.out, "{label}:");
        for line in escaped.strip_suffix('\n').unwrap_or(escaped).split('\n') {
            let _ = writeln!(self.out, "  {line}");
        }
        self.out.push('\n');
    }

    /// The three fields without which nobody can go on.
    pub(crate) fn identifiers(&mut self, task: &Task) {
        self.field("Task ID", task.id.as_str());
        let context = task.context_id.as_ref().map(|context| context.as_str());
        self.field("Context ID", context.unwrap_or_default());
        self.field("State", short(task.status.state));
    }

    /// A task: where it stands, what it has to say, what it has produced.
    pub(crate) fn task(&mut self, task: &Task) {
        self.identifiers(task);
        let since = task.status.timestamp.map(|timestamp| timestamp.to_string());
        self.optional("Updated", since.as_deref());
        if let Some(message) = &task.status.message {
            self.message("Status", message);
        }
        for artifact in &task.artifacts {
            self.artifact(artifact);
        }
        if self.verbose {
            for message in &task.history {
                self.message(speaker(message), message);
            }
            self.metadata(task.metadata.as_ref());
        }
    }

    /// A direct answer, without a task.
    pub(crate) fn reply(&mut self, message: &Message) {
        let context = message.context_id.as_ref().map(|context| context.as_str());
        self.optional("Context ID", context);
        let task = message.task_id.as_ref().map(|task| task.as_str());
        self.optional("Task ID", task);
        self.message("Message", message);
    }

    /// How to go on with a task that has not ended.
    pub(crate) fn resume(&mut self, task: &Task, hints: &Hints) {
        let state = task.status.state;
        if state.is_interrupted() {
            self.field("Resume", &hints.answer(task.id.as_str()));
        } else if !is_resting(state) {
            self.field("Resume", &hints.wait(task.id.as_str()));
        }
    }

    /// An event of a stream.
    pub(crate) fn event(&mut self, event: &StreamResponse) {
        match event {
            StreamResponse::Task(task) => self.task(task),
            StreamResponse::Message(message) => self.reply(message),
            StreamResponse::StatusUpdate(update) => {
                let state = update.status.state;
                // The last event says the state with the identifiers.
                if !is_resting(state) {
                    self.field("State", short(state));
                }
                if let Some(message) = &update.status.message {
                    self.message("Status", message);
                }
                self.metadata(update.metadata.as_ref());
            }
            StreamResponse::ArtifactUpdate(update) => {
                self.artifact(&update.artifact);
                if self.verbose {
                    self.field("Append", yes_or_no(update.append));
                    self.field("Last Chunk", yes_or_no(update.last_chunk));
                }
                self.metadata(update.metadata.as_ref());
            }
            _ => {}
        }
    }

    /// The end of a page of tasks.
    pub(crate) fn page(&mut self, page: &ListTasksResponse) {
        self.field("Total", &page.total_size.to_string());
        self.optional("Next Page Token", Some(&page.next_page_token));
    }

    fn artifact(&mut self, artifact: &Artifact) {
        self.field("Artifact", artifact.artifact_id.as_str());
        self.optional("Artifact Name", artifact.name.as_deref());
        self.optional("Artifact Description", artifact.description.as_deref());
        self.parts("Text", &artifact.parts);
        self.metadata(artifact.metadata.as_ref());
    }

    /// A message under a label; its other parts follow.
    fn message(&mut self, label: &str, message: &Message) {
        if self.verbose {
            self.field(&format!("{label} ID"), message.message_id.as_str());
        }
        self.parts(label, &message.parts);
        self.metadata(message.metadata.as_ref());
    }

    /// Parts in order; neighbouring texts are one, unless everything is to be shown.
    fn parts(&mut self, label: &str, parts: &[Part]) {
        let mut text: Option<String> = None;
        for part in parts {
            match &part.content {
                PartContent::Text(more) if !self.verbose => {
                    text.get_or_insert_default().push_str(more);
                }
                _ => {
                    if let Some(text) = text.take() {
                        self.block(label, &text);
                    }
                    self.part(label, part);
                }
            }
        }
        if let Some(text) = text {
            self.block(label, &text);
        }
    }

    fn part(&mut self, label: &str, part: &Part) {
        match &part.content {
            PartContent::Text(text) => {
                self.block(label, text);
                self.named(part);
            }
            PartContent::Data(data) => {
                let pretty = serde_json::to_string_pretty(data).unwrap_or_default();
                self.block("Data", &pretty);
                self.named(part);
            }
            PartContent::Raw(bytes) => {
                self.field("File", part.filename.as_deref().unwrap_or("(unnamed)"));
                self.optional("Media Type", part.media_type.as_deref());
                self.field("Size", &format!("{} bytes", bytes.len()));
            }
            PartContent::Url(url) => {
                self.field("File", part.filename.as_deref().unwrap_or("(unnamed)"));
                self.optional("Media Type", part.media_type.as_deref());
                self.field("URL", url);
            }
        }
        self.metadata(part.metadata.as_ref());
    }

    fn named(&mut self, part: &Part) {
        if self.verbose {
            self.optional("File Name", part.filename.as_deref());
            self.optional("Media Type", part.media_type.as_deref());
        }
    }

    fn metadata(&mut self, metadata: Option<&nuncio_protocol::Metadata>) {
        if let Some(metadata) = metadata.filter(|_| self.verbose) {
            self.block(
                "Metadata",
                &serde_json::to_string_pretty(metadata).unwrap_or_default(),
            );
        }
    }
}

fn speaker(message: &Message) -> &'static str {
    match message.role {
        Role::User => "User Message",
        Role::Agent => "Agent Message",
        Role::Unspecified => "Message",
    }
}

pub(crate) fn yes_or_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::{TaskState, TaskStatus, Timestamp};
    use serde_json::json;

    use super::*;

    fn task() -> Task {
        let status = TaskStatus::new(TaskState::Completed, Timestamp::from_unix_ms(0));
        let mut task = Task::new("t1".into(), "c1".into(), status);
        let parts = vec![
            Part::text("one\n\nState: FAILED\n"),
            Part::text("\u{1b}[31mred"),
            Part::data(json!({"a": null})),
            Part::raw("abc")
                .with_filename("x.bin")
                .with_media_type("application/octet-stream"),
            Part::url("https://h.example/x"),
        ];
        task.artifacts.push(Artifact::new("a1", parts));
        task
    }

    #[test]
    fn no_part_is_lost_and_no_line_of_an_agent_looks_like_a_field() {
        let mut text = Text::new(false);
        text.task(&task());
        insta::assert_snapshot!(text.finish(), @r#"
        Task ID: t1
        Context ID: c1
        State: COMPLETED
        Updated: 1970-01-01T00:00:00.000Z
        Artifact: a1
        Text:
          one
          
          State: FAILED
          \u{1b}[31mred

        Data:
          {
            "a": null
          }

        File: x.bin
        Media Type: application/octet-stream
        Size: 3 bytes
        File: (unnamed)
        URL: https://h.example/x
        "#);
    }

    #[test]
    fn a_task_that_waits_says_how_to_answer() {
        let mut waiting = task();
        waiting.artifacts.clear();
        waiting.status.state = TaskState::InputRequired;
        let mut text = Text::new(false);
        text.resume(&waiting, &Hints::new(None));
        assert_eq!(
            text.finish(),
            "Resume: nuncio send --task-id t1 \"<reply>\"\n"
        );
    }
}
