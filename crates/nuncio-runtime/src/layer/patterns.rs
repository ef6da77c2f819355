//! Regular expressions, and where they are looked for.

use regex::{NoExpand, Regex};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::texts::Texts;

/// Where a layer looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// Messages on their way in.
    Input,
    /// Requests on their way to a model.
    Model,
    /// Calls of tools, what they give, and why they failed.
    Tool,
    /// Artifacts and words on their way out.
    Output,
}

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pattern:?} is no pattern: {reason}")]
pub struct PatternError {
    /// Which one, from 0.
    pub index: usize,
    /// The pattern.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Patterns in the syntax of the crate `regex`, which takes time in proportion to the text whatever the
/// pattern is; one whose compiled form is above 10 MiB is refused.
#[derive(Clone, Debug)]
pub(super) struct Patterns(Vec<Regex>);

impl Patterns {
    pub(super) fn new<P: AsRef<str>>(
        patterns: impl IntoIterator<Item = P>,
    ) -> Result<Self, PatternError> {
        let read = |(index, pattern): (usize, P)| {
            let pattern = pattern.as_ref();
            Regex::new(pattern).map_err(|error| PatternError {
                index,
                pattern: pattern.to_owned(),
                reason: reason(&error),
            })
        };
        let patterns = patterns.into_iter().enumerate().map(read);
        patterns.collect::<Result<_, _>>().map(Self)
    }

    /// Whether one of them is found in any text.
    pub(super) fn are_in(&self, texts: &mut impl Texts) -> bool {
        let mut found = false;
        texts.each(&mut |text| {
            found = found || self.0.iter().any(|pattern| pattern.is_match(text));
        });
        found
    }

    /// Puts a word in the place of all that is found.
    pub(super) fn replace(&self, texts: &mut impl Texts, with: &str) {
        texts.each(&mut |text| {
            for pattern in &self.0 {
                if let std::borrow::Cow::Owned(changed) = pattern.replace_all(text, NoExpand(with))
                {
                    *text = changed;
                }
            }
        });
    }
}

/// The last line says what is wrong; those before draw where.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}
