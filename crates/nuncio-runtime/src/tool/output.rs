//! What a tool gives.

use std::error::Error;
use std::fmt;

use nuncio_engine::Pause;
use nuncio_protocol::{AgentId, Message, Part};
use serde::Serialize;
use serde_json::Value;

use super::Later;

/// What a call gave.
#[derive(Debug)]
#[non_exhaustive]
pub enum ToolOutput {
    /// A value, which the model reads as JSON, or as it is if it is a text.
    Value(Value),
    /// Content; what is no text is shown to the model as a file, if it can take one.
    Parts(Vec<Part>),
    /// The task must wait for somebody. With the answer the call is made again, and finds it with
    /// [`ToolCx::answer`](super::ToolCx::answer).
    Paused(Box<Pause>),
    /// The result comes later, by a callback.
    Later(Later),
    /// Another agent of this server is to have the task from now on. The other calls of the same
    /// answer are finished first; of two the first counts.
    HandOff {
        /// Which one.
        agent: AgentId,
        /// What to tell it.
        message: Box<Message>,
    },
}

impl ToolOutput {
    /// Waits for somebody.
    pub fn paused(pause: Pause) -> Self {
        Self::Paused(Box::new(pause))
    }
}

/// Why a call failed.
///
/// The model reads the message; the source goes to the log only.
#[derive(Debug)]
pub struct ToolError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl ToolError {
    /// A failure to tell the model in these words.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    /// A failure whose cause is not the model's business.
    pub fn internal(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            message: "the tool failed".to_owned(),
            source: Some(source.into()),
        }
    }

    /// A failure to tell the model in these words, with its cause for the log.
    pub fn caused(
        message: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self {
            message: message.into(),
            source: Some(source.into()),
        }
    }

    /// The words for the model.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ToolError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// What a function may return as a tool's output.
pub trait IntoToolOutput {
    /// The output.
    ///
    /// # Errors
    /// [`ToolError`] for what cannot be written as JSON.
    fn into_output(self) -> Result<ToolOutput, ToolError>;
}

/// Any value, given to the model as JSON.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl IntoToolOutput for ToolOutput {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl IntoToolOutput for Value {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::Value(self))
    }
}

impl IntoToolOutput for String {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::Value(Value::String(self)))
    }
}

impl IntoToolOutput for &str {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        self.to_owned().into_output()
    }
}

impl<T: Serialize> IntoToolOutput for Json<T> {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        let value = serde_json::to_value(self.0).map_err(ToolError::internal)?;
        Ok(ToolOutput::Value(value))
    }
}
