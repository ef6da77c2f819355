//! Taking out what matches.

use nuncio_engine::{Input, RunCx};
use nuncio_protocol::{Artifact, Message};

use super::patterns::Patterns;
use super::texts::Texts;
use super::{At, Layer, LayerFuture, PatternError};
use crate::model::{ModelRequest, ToolCall};
use crate::tool::ToolOutput;

/// Puts `[removed]` in the place of all that matches a pattern: in texts, and in texts of data however
/// deep they are. Bytes of files are left alone; what a model reads of a text file is seen at
/// [`At::Model`].
///
/// It looks everywhere unless [`at`](Self::at) says otherwise. What comes in is changed for the agent;
/// the task keeps the message as it was sent. With [`At::Output`] artifacts are given whole, at the end.
///
/// ```
/// use nuncio_runtime::layer::{At, Redact};
///
/// let numbers = Redact::new(["[0-9]{3}-[0-9]{2}-[0-9]{4}"])?
///     .with("[number]")
///     .at([At::Input, At::Output]);
/// # let _ = numbers;
/// assert_eq!(Redact::new(["ok", "[0-9"]).unwrap_err().index, 1);
/// # Ok::<_, nuncio_runtime::layer::PatternError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Redact {
    patterns: Patterns,
    with: String,
    at: Vec<At>,
}

impl Redact {
    /// What stands for what was taken out, unless something else is said.
    pub const WITH: &str = "[removed]";

    /// Takes out what matches one of these patterns, each in what the ones before have left.
    ///
    /// # Errors
    /// [`PatternError`] for the first one that cannot be used.
    pub fn new<P: AsRef<str>>(patterns: impl IntoIterator<Item = P>) -> Result<Self, PatternError> {
        Ok(Self {
            patterns: Patterns::new(patterns)?,
            with: Self::WITH.to_owned(),
            at: vec![At::Input, At::Model, At::Tool, At::Output],
        })
    }

    /// Puts this in the place, as it is.
    #[must_use]
    pub fn with(mut self, with: impl Into<String>) -> Self {
        self.with = with.into();
        self
    }

    /// Looks only there.
    #[must_use]
    pub fn at(mut self, at: impl IntoIterator<Item = At>) -> Self {
        self.at = at.into_iter().collect();
        self
    }

    fn passed<'a, T: Texts + Send + 'a>(&'a self, at: At, mut passes: T) -> LayerFuture<'a, T> {
        if self.at.contains(&at) {
            self.patterns.replace(&mut passes, &self.with);
        }
        Box::pin(std::future::ready(Ok(passes)))
    }
}

impl Layer for Redact {
    fn input<'a>(&'a self, _: &'a RunCx, input: Input) -> LayerFuture<'a, Input> {
        self.passed(At::Input, input)
    }

    fn model_request<'a>(
        &'a self,
        _: &'a RunCx,
        request: ModelRequest,
    ) -> LayerFuture<'a, ModelRequest> {
        self.passed(At::Model, request)
    }

    fn tool_call<'a>(&'a self, _: &'a RunCx, call: ToolCall) -> LayerFuture<'a, ToolCall> {
        self.passed(At::Tool, call)
    }

    fn tool_output<'a>(
        &'a self,
        _: &'a RunCx,
        _: &'a ToolCall,
        output: ToolOutput,
    ) -> LayerFuture<'a, ToolOutput> {
        self.passed(At::Tool, output)
    }

    fn tool_failure<'a>(
        &'a self,
        _: &'a RunCx,
        _: &'a ToolCall,
        words: String,
    ) -> LayerFuture<'a, String> {
        self.passed(At::Tool, words)
    }

    fn sees_output(&self) -> bool {
        self.at.contains(&At::Output)
    }

    fn output<'a>(&'a self, _: &'a RunCx, artifact: Artifact) -> LayerFuture<'a, Artifact> {
        self.passed(At::Output, artifact)
    }

    fn words<'a>(&'a self, _: &'a RunCx, message: Message) -> LayerFuture<'a, Message> {
        self.passed(At::Output, message)
    }
}
