//! Commands to copy: how to go on with a task.

/// The program's part of a command to copy, with the agent it is about.
///
/// Only the agent's address is repeated, never a credential.
#[derive(Clone, Debug)]
pub(crate) struct Hints {
    agent: Option<String>,
}

impl Hints {
    /// Commands for this agent; `None` if the environment or a file names it.
    pub(crate) fn new(agent: Option<String>) -> Self {
        Self { agent }
    }

    fn command(&self, words: &str, rest: &str) -> String {
        let agent = self
            .agent
            .as_deref()
            .map(|agent| format!(" --agent-card {}", quote(agent)));
        format!("nuncio {words}{} {rest}", agent.unwrap_or_default())
    }

    /// Answers a task.
    pub(crate) fn answer(&self, task: &str) -> String {
        self.command("send", &format!("--task-id {} \"<reply>\"", quote(task)))
    }

    /// Waits for a task.
    pub(crate) fn wait(&self, task: &str) -> String {
        self.command("task get", &format!("--wait {}", quote(task)))
    }

    /// Sends again what may have arrived.
    pub(crate) fn repeat(&self, message: &str) -> String {
        self.command(
            "send",
            &format!("--message-id {} \"<the same message>\"", quote(message)),
        )
    }

    /// Lists tasks.
    pub(crate) fn list(&self) -> String {
        self.command("task list", "").trim_end().to_owned()
    }
}

/// A word as a shell takes it literally.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", super::escape(word).replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_copied() {
        let hints = Hints::new(Some("http://h:1".to_owned()));
        assert_eq!(
            hints.answer("t-1"),
            "nuncio send --agent-card http://h:1 --task-id t-1 \"<reply>\""
        );
        assert_eq!(
            Hints::new(None).wait("a b'$(x)"),
            "nuncio task get --wait 'a b'\\''$(x)'"
        );
        assert_eq!(Hints::new(None).list(), "nuncio task list");
    }
}
