//! The last words of a program, without secrets.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

/// Lines kept for the error of a program that ends early.
const KEPT_LINES: usize = 20;

/// Characters of a line that are kept and logged.
const SHOWN_CHARS: usize = 1_000;

/// Shorter values mask too much that is no secret, such as every `1`.
const SHORTEST_SECRET: usize = 4;

const MASK: &str = "***";

/// Masks the values of variables.
#[derive(Clone)]
pub(super) struct Masks(Arc<[String]>);

impl Masks {
    /// The masks for these variables. A value of several lines is masked line by line.
    pub(super) fn of(variables: &BTreeMap<String, String>) -> Self {
        let lines = variables.values().flat_map(|value| value.lines());
        let long = |line: &&str| line.chars().count() >= SHORTEST_SECRET;
        let mut secrets: Vec<String> = lines.map(str::trim).filter(long).map(Into::into).collect();
        // What contains another secret goes first, so that no rest of it stays.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets.into())
    }

    /// A line as it may be shown.
    pub(super) fn shown(&self, line: &[u8]) -> String {
        let text = String::from_utf8_lossy(line);
        let masked = self.0.iter().fold(text.into_owned(), |text, secret| {
            text.replace(secret.as_str(), MASK)
        });
        masked.chars().take(SHOWN_CHARS).collect()
    }
}

/// The last lines.
#[derive(Default)]
pub(super) struct Tail(Mutex<VecDeque<String>>);

impl Tail {
    pub(super) fn add(&self, line: String) {
        let mut lines = self.0.lock();
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// What was said last, after a few words, or nothing.
    pub(super) fn told(&self) -> String {
        let lines = self.0.lock();
        lines.iter().fold(String::new(), |mut told, line| {
            told.push_str(if told.is_empty() {
                "; its last words:\n"
            } else {
                "\n"
            });
            told.push_str(line);
            told
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_short_values_are_not() {
        let variables = [
            ("A", "secret"),
            ("B", "1"),
            ("C", "secret-and-more"),
            ("D", "line one\nline two"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let masks = Masks::of(&variables.into_iter().collect());
        assert_eq!(
            masks.shown(b"secret-and-more, secret, 1, line two \xff"),
            "***, ***, 1, *** \u{fffd}"
        );
        assert_eq!(masks.shown(&[b'x'; 5_000]).len(), 1_000);
    }

    #[test]
    fn the_last_twenty_lines_are_kept() {
        let tail = Tail::default();
        assert_eq!(tail.told(), "");
        for number in 0..30 {
            tail.add(number.to_string());
        }
        let told = tail.told();
        assert!(told.starts_with("; its last words:\n10\n11\n"), "{told}");
        assert!(told.ends_with("\n29"), "{told}");
    }
}
