//! Refusing what matches.

use std::future::ready;

use nuncio_engine::{Input, RunCx};
use nuncio_protocol::{Artifact, Message};

use super::patterns::Patterns;
use super::texts::Texts;
use super::{At, Layer, LayerError, LayerFuture, PatternError};
use crate::model::{ModelRequest, ToolCall};
use crate::tool::ToolOutput;

/// A guardrail: refuses, with words of its own, what matches a pattern.
///
/// A message is REJECTED before the agent sees it; of what was said before only the newest message
/// counts. A call of a tool is not made, and what a tool gave does not reach the model, which is told
/// the words instead. What would go out does not, and the task is REJECTED. A request to a model, if
/// [`At::Model`] is asked for, fails the task with the words.
///
/// ```
/// use nuncio_runtime::layer::{At, Refuse};
///
/// let guard = Refuse::new(["(?i)internal only"], "this must not be asked here")?.at([At::Input]);
/// # let _ = guard;
/// # Ok::<_, nuncio_runtime::layer::PatternError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Refuse {
    patterns: Patterns,
    words: String,
    at: Vec<At>,
}

impl Refuse {
    /// Refuses what matches one of these patterns at input, tool and output.
    ///
    /// # Errors
    /// [`PatternError`] for the first one that cannot be used.
    pub fn new<P: AsRef<str>>(
        patterns: impl IntoIterator<Item = P>,
        words: impl Into<String>,
    ) -> Result<Self, PatternError> {
        Ok(Self {
            patterns: Patterns::new(patterns)?,
            words: words.into(),
            at: vec![At::Input, At::Tool, At::Output],
        })
    }

    /// Looks only there.
    #[must_use]
    pub fn at(mut self, at: impl IntoIterator<Item = At>) -> Self {
        self.at = at.into_iter().collect();
        self
    }

    fn judged(&self, at: At, texts: &mut impl Texts) -> Result<(), LayerError> {
        match self.at.contains(&at) && self.patterns.are_in(texts) {
            true => Err(LayerError::Refused(self.words.clone())),
            false => Ok(()),
        }
    }

    fn passed<'a, T: Texts + Send + 'a>(&'a self, at: At, mut passes: T) -> LayerFuture<'a, T> {
        let judged = self.judged(at, &mut passes);
        Box::pin(ready(judged.map(|()| passes)))
    }
}

impl Layer for Refuse {
    fn input<'a>(&'a self, _: &'a RunCx, mut input: Input) -> LayerFuture<'a, Input> {
        let judged = self.judged(At::Input, &mut input.message);
        Box::pin(ready(judged.map(|()| input)))
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
