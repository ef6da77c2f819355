//! Models behind one trait.
//!
//! A [`Model`] answers one [`ModelRequest`] with a stream of [`ModelChunk`]s. [`GenaiModel`] asks a
//! provider, [`FakeModel`] plays rules, and [`ModelChain`] repeats and falls back. Conversations,
//! tools and budgets are the business of who asks.

mod chain;
mod chunk;
mod error;
mod fake;
mod provider;
mod request;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;

pub use chain::{ModelChain, RetryPolicy};
pub use chunk::{ModelChunk, StopReason, Thought, Usage};
pub use error::ModelError;
pub use fake::{FakeError, FakeFault, FakeModel, FakeReply, FakeRule, FakeWhen};
pub use provider::{GenaiModel, GenaiModelBuilder};
pub use request::{ModelParams, ModelRequest, Reasoning, ToolCall, ToolResult, Turn, UserPart};

/// What a model gives in the end.
pub type ModelFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ModelError>> + Send + 'a>>;

/// The pieces of one answer, in order; the last of a whole answer is [`ModelChunk::Done`].
///
/// Dropping it gives the answer up and closes the connection.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelChunk, ModelError>> + Send>>;

/// A language model.
pub trait Model: Send + Sync {
    /// Its name, as its provider calls it.
    fn name(&self) -> &str;

    /// Begins an answer. An error may come here or from the stream.
    ///
    /// # Errors
    /// [`ModelError`].
    fn generate(&self, request: ModelRequest) -> ModelFuture<'_, ModelStream>;
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn generate(&self, request: ModelRequest) -> ModelFuture<'_, ModelStream> {
        (**self).generate(request)
    }
}
