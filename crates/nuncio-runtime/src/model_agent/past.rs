//! What was said in earlier tasks of the conversation.
//!
//! A task writes what was said in it when it is done, in one go: so calls of tools stand beside their
//! results, whatever other tasks do meanwhile. What a task said that failed or was canceled is not
//! kept.

use std::time::Duration;

use nuncio_engine::{AgentError, RunCx, Session, SessionError};
use serde_json::Value;

use super::conversation::Entry;

/// Entries that are read at most, the newest.
const READ: usize = 1_000;
/// How often a store that does not take entries is asked.
const TRIES: u32 = 8;
/// Bytes of JSON that an entry may have, below the 1 MiB that a session takes.
const MAX_BYTES: usize = 1_000_000;
/// Names the run that wrote an entry.
const RUN: &str = "run";

/// The conversation before this task.
#[derive(Debug)]
pub(super) struct Past {
    session: Session,
    /// What was said, with its position.
    entries: Vec<(u64, Entry)>,
}

impl Past {
    /// Reads the conversation, and tells whether this run has written its part before a crash.
    pub(super) async fn load(cx: &RunCx, run: Option<&str>) -> Result<(Self, bool), AgentError> {
        let mut session = cx.session();
        let mut entries = Vec::new();
        let mut written = false;
        for stored in session.load(READ).await? {
            if task_of(&stored.value).is_some_and(|task| cx.repeats_task(task)) {
                // A run that repeats this task knows what was said before it.
                break;
            }
            if run.is_some() && run_of(&stored.value) == run {
                written = true;
                continue;
            }
            match serde_json::from_value(stored.value) {
                Ok(entry) => entries.push((stored.position, entry)),
                Err(error) => {
                    tracing::warn!(position = stored.position, %error, "an entry of a conversation is left out");
                }
            }
        }
        // Results without their calls, where reading has begun between them.
        let results = |(_, entry): &(u64, Entry)| matches!(entry, Entry::Results { .. });
        let first = entries.iter().position(|entry| !results(entry));
        entries.drain(..first.unwrap_or(entries.len()));
        Ok((Self { session, entries }, written))
    }

    /// What was said, oldest first.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    /// Leaves out what was said.
    pub(super) fn set_aside(&mut self) {
        self.entries.clear();
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The session, for state.
    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    /// Adds what was said in this task.
    pub(super) async fn add(&mut self, run: &str, entries: &[Entry]) -> Result<(), AgentError> {
        let values: Vec<_> = entries.iter().map(|entry| stored(entry, run)).collect();
        let mut tries = 0;
        loop {
            tries += 1;
            match self.session.append(values.clone()).await {
                Ok(()) => return Ok(()),
                // Another task was quicker, or the answer of our own write was lost.
                Err(SessionError::Moved(came)) => {
                    if came.iter().any(|entry| run_of(&entry.value) == Some(run)) {
                        return Ok(());
                    }
                }
                Err(SessionError::Store(error)) if tries < TRIES => {
                    tracing::warn!(%error, "a conversation is not stored yet");
                    tokio::time::sleep(Duration::from_millis(50) * 2_u32.pow(tries)).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Puts a summary in the place of the oldest entries.
    pub(super) async fn compact(
        &mut self,
        count: usize,
        summary: &Entry,
    ) -> Result<(), AgentError> {
        let Some((through, _)) = self.entries.get(count.wrapping_sub(1)) else {
            return Ok(());
        };
        let through = *through;
        self.session.compact(through, &stored(summary, "")).await?;
        self.entries.splice(..count, [(through, summary.clone())]);
        Ok(())
    }
}

/// The task in which an entry was said.
fn task_of(value: &Value) -> Option<&str> {
    let (task, _) = run_of(value)?.split_once(':')?;
    Some(task)
}

fn run_of(value: &Value) -> Option<&str> {
    value[RUN].as_str()
}

/// An entry as it is kept. One that is too large loses the most of its texts.
fn stored(entry: &Entry, run: &str) -> Value {
    let write = |entry: &Entry| serde_json::to_value(entry).unwrap_or_default();
    let mut value = write(entry);
    let size = value.to_string().len();
    if size > MAX_BYTES {
        let mut entry = entry.clone();
        entry.shorten(MAX_BYTES / 8);
        value = write(&entry);
    }
    if let Value::Object(members) = &mut value {
        members.insert(RUN.to_owned(), run.into());
    }
    value
}
