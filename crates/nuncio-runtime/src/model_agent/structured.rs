//! Answers that must be JSON of a schema.

use std::fmt;

use jsonschema::Validator;
use nuncio_protocol::Part;
use serde_json::Value;

use crate::tool::faults;

/// The schema of the answer.
pub(super) struct OutputSchema {
    pub(super) schema: Value,
    validator: Validator,
}

impl fmt::Debug for OutputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OutputSchema").field(&self.schema).finish()
    }
}

impl OutputSchema {
    /// Reads a schema.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn new(schema: Value) -> Result<Self, String> {
        let validator = jsonschema::validator_for(&schema).map_err(|error| error.to_string())?;
        Ok(Self { schema, validator })
    }

    /// The value that a text is, if it fits.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(&self, text: &str) -> Result<Value, String> {
        let value: Value = serde_json::from_str(unfenced(text))
            .map_err(|error| format!("it is no JSON: {error}"))?;
        faults(&self.validator, &value)?;
        Ok(value)
    }
}

/// A value as content: data, and the same as text (BR-177).
pub(super) fn parts(value: &Value) -> Vec<Part> {
    let text = Part::text(value.to_string());
    vec![
        Part::data(value.clone()).with_media_type("application/json"),
        text,
    ]
}

/// The text without the fence of a code block, which models like to put around JSON.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text
        .strip_prefix("```json")
        .or_else(|| text.strip_prefix("```"))
        .and_then(|rest| rest.strip_suffix("```"));
    inner.unwrap_or(text).trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_is_read_with_and_without_a_fence() {
        let schema = json!({"type": "object", "required": ["a"]});
        let output = OutputSchema::new(schema).unwrap();
        for text in [
            "{\"a\":1}",
            " ```json\n{\"a\": 1}\n``` ",
            "```\n{\"a\":1}```",
        ] {
            assert_eq!(output.read(text), Ok(json!({"a": 1})), "{text}");
        }
        assert!(output.read("{}").unwrap_err().contains("\"a\""));
        assert!(
            output
                .read("well: {}")
                .unwrap_err()
                .starts_with("it is no JSON")
        );
    }
}
