//! What a tool says about itself.

use std::time::Duration;

use serde_json::{Value, json};

/// What a tool is and how it may be called.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolSpec {
    /// Its name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub input_schema: Value,
    /// Whether it changes nothing, so that it may be called again after a failure; no.
    pub read_only: bool,
    /// Whether a call that a crash has cut off may be made again, as it goes on where it was; no.
    pub resumable: bool,
    /// Whether it may be called beside others; no.
    pub parallel: bool,
    /// Whether somebody must approve each call; no.
    pub needs_approval: bool,
    /// How long a call may take; 60 s.
    pub timeout: Duration,
}

impl ToolSpec {
    /// A tool that takes these arguments.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            input_schema,
            read_only: false,
            resumable: false,
            parallel: false,
            needs_approval: false,
            timeout: Duration::from_secs(60),
        }
    }

    /// A tool that takes no arguments.
    pub fn without_arguments(name: impl Into<String>, description: impl Into<String>) -> Self {
        let schema = json!({"type": "object", "properties": {}});
        Self::new(name, description, schema)
    }

    /// Whether all providers take its name.
    pub(crate) fn is_name(name: &str) -> bool {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        (1..=64).contains(&name.len()) && name.chars().all(fits)
    }
}
