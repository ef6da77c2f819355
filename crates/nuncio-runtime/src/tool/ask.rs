//! The tool that asks the user.

use nuncio_engine::Pause;
use nuncio_protocol::Part;
use serde_json::{Value, json};

use super::{Tool, ToolCx, ToolFuture, ToolOutput, ToolSpec};

/// `ask_user`: the task becomes INPUT_REQUIRED with the question, and the answer is the result.
#[derive(Debug)]
pub struct AskUser {
    spec: ToolSpec,
}

impl AskUser {
    /// The name of the tool.
    pub const NAME: &str = "ask_user";
}

impl Default for AskUser {
    fn default() -> Self {
        let schema = json!({
            "type": "object",
            "properties": {
                "question": {
                    "type": "string",
                    "minLength": 1,
                    "description": "What to ask, in the user's language."
                }
            },
            "required": ["question"]
        });
        let description = "Asks the user a question and waits for the answer. Use it when something \
            is missing that only the user knows or has, such as a decision or a photo.";
        Self {
            spec: ToolSpec {
                read_only: true,
                ..ToolSpec::new(Self::NAME, description, schema)
            },
        }
    }
}

impl Tool for AskUser {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, cx: ToolCx, args: Value) -> ToolFuture<'_> {
        Box::pin(async move {
            if let Some(answer) = cx.answer() {
                return Ok(ToolOutput::Parts(answer.parts.clone()));
            }
            let question = args["question"].as_str().unwrap_or_default();
            let prompt = cx.run().message(vec![Part::text(question)]);
            Ok(ToolOutput::paused(Pause::input(prompt)))
        })
    }
}
