//! Keeping a conversation short.

use std::fmt::Write as _;

use futures_util::StreamExt as _;

use super::conversation::Entry;
use super::exchange::Exchange;
use super::file::FileRef;
use crate::model::{ModelChunk, ModelError, ModelRequest};

const TASK: &str = "You shorten conversations. Summarise the conversation that the user gives you, \
    so that an assistant can go on with it: facts, names, numbers, decisions, what is still open. \
    Write in the language of the conversation. Give only the summary.";

impl Exchange<'_> {
    /// Summarises the older part of a conversation that is too long; `now` says that it is too long
    /// whatever we estimate. Whether anything was summarised.
    pub(super) async fn compact(&mut self, now: bool) -> bool {
        let limit = self.agent.budgets.compact_above_tokens;
        let entries: Vec<_> = self.entries().cloned().collect();
        let size = entries.iter().map(Entry::tokens).sum::<u64>();
        if size <= limit && !now {
            return false;
        }
        let cut = older(&entries, limit.min(size) / 4);
        if cut == 0 {
            return false;
        }
        let text = match self.summarise(&entries[..cut]).await {
            Ok(text) if !text.trim().is_empty() => text,
            Ok(_) => return false,
            Err(error) => {
                tracing::warn!(task.id = %self.cx.task(), %error, "a conversation was not summarised");
                return false;
            }
        };
        self.put_summary(cut, Entry::Summary { text }).await;
        true
    }

    /// Puts a summary in the place of the oldest entries, those of earlier tasks first.
    async fn put_summary(&mut self, cut: usize, summary: Entry) {
        let past = self.past.len();
        let of_this_task = cut.saturating_sub(past);
        if past == 0 {
            self.left.conversation.0.splice(..cut, [summary]);
            return;
        }
        self.left.conversation.0.drain(..of_this_task);
        if let Err(error) = self.past.compact(cut.min(past), &summary).await {
            // The whole conversation is summarised again next time.
            tracing::warn!(task.id = %self.cx.task(), %error, "a summary was not stored");
        }
    }

    async fn summarise(&mut self, older: &[Entry]) -> Result<String, ModelError> {
        let mut request = ModelRequest::text(transcript(older));
        request.system = Some(TASK.to_owned());
        let mut answer = self.with.model.generate(request).await?;
        let mut text = String::new();
        while let Some(chunk) = answer.next().await {
            match chunk? {
                ModelChunk::Text(words) => text.push_str(&words),
                ModelChunk::Done { usage, .. } => self.count(usage),
                _ => {}
            }
        }
        Ok(text)
    }
}

/// How many of the oldest entries to summarise, so that about `kept` tokens stay. Calls of tools stay
/// with their results, and the newest entry always stays.
fn older(entries: &[Entry], kept: u64) -> usize {
    let mut cut = entries.len().saturating_sub(1);
    let mut size = entries.last().map_or(0, Entry::tokens);
    while cut > 0 && size + entries[cut - 1].tokens() <= kept {
        cut -= 1;
        size += entries[cut].tokens();
    }
    let splits_a_pair = |cut: usize| matches!(entries.get(cut), Some(Entry::Results { .. }));
    while cut > 0 && splits_a_pair(cut) {
        cut -= 1;
    }
    // A summary alone would only be summarised again.
    match &entries[..cut] {
        [Entry::Summary { .. }] => 0,
        _ => cut,
    }
}

fn transcript(entries: &[Entry]) -> String {
    let mut text = String::new();
    let mut line = |who: &str, words: &str| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{who}: {words}");
    };
    for entry in entries {
        match entry {
            Entry::User { text, files, .. } => {
                line("User", text);
                files.iter().for_each(|file| line("User", &file.mention()));
            }
            Entry::Assistant { text, calls, .. } => {
                if !text.is_empty() {
                    line("Assistant", text);
                }
                for call in calls {
                    line(
                        "Assistant",
                        &format!("[calls {} with {}]", call.name, call.arguments),
                    );
                }
            }
            Entry::Results { results, files } => {
                for result in results {
                    line(&format!("Tool {}", result.name), &result.content);
                }
                for mention in files.iter().map(FileRef::mention) {
                    line("Tool", &mention);
                }
            }
            Entry::Note { text } => line("Note", text),
            Entry::Summary { text } => line("Earlier, in short", text),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ToolResult;

    fn words(count: usize) -> Entry {
        Entry::said("word".repeat(count))
    }

    fn results() -> Entry {
        let result = ToolResult {
            id: "1".to_owned(),
            name: "t".to_owned(),
            content: "word".repeat(10),
            is_error: false,
        };
        Entry::Results {
            results: vec![result],
            files: Vec::new(),
        }
    }

    #[test]
    fn the_newest_part_stays() {
        let conversation = [words(10), words(10), words(10), words(10)];
        assert_eq!(older(&conversation, 25), 2);
        assert_eq!(
            older(&conversation, 5),
            3,
            "the newest entry stays in any case"
        );
        assert_eq!(older(&conversation, 100), 0);
    }

    #[test]
    fn results_stay_with_their_calls() {
        let conversation = [words(10), words(10), results(), words(10)];
        assert_eq!(older(&conversation, 25), 1);
    }

    #[test]
    fn a_summary_is_not_summarised_alone() {
        let summary = Entry::Summary {
            text: "s".to_owned(),
        };
        let conversation = [summary, words(10), words(10)];
        assert_eq!(older(&conversation, 25), 0);
        assert_eq!(older(&conversation, 15), 2);
    }
}
