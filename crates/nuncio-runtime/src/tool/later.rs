//! Results that come later, by a callback.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use tokio::sync::oneshot;

use super::{ToolError, ToolFuture, ToolOutput};

/// A result that is still to come. The run waits for it, and the task stays WORKING meanwhile.
pub struct Later {
    result: ToolFuture<'static>,
    within: Option<Duration>,
}

/// Gives the result of a [`Later`].
pub struct Completer(oneshot::Sender<Result<ToolOutput, ToolError>>);

impl Later {
    /// A result to come, and what it is to be given with.
    pub fn new() -> (Self, Completer) {
        let (sender, result) = oneshot::channel();
        let lost = |_| ToolError::new("the tool gave up without a result");
        let later = Self {
            result: Box::pin(async move { result.await.map_err(lost)? }),
            within: None,
        };
        (later, Completer(sender))
    }

    /// The same, waited for no longer than this; as long as the run may take if not said.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.within = Some(limit);
        self
    }

    /// The same, with what is made of the result. It is made of one that does not come in time too.
    #[must_use]
    pub(crate) fn then<F>(
        self,
        made: impl FnOnce(Result<ToolOutput, ToolError>) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        Self {
            result: Box::pin(async move { made(self.wait().await).await }),
            within: None,
        }
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// The tool's own, or that there is none.
    pub async fn wait(self) -> Result<ToolOutput, ToolError> {
        match self.within {
            None => self.result.await,
            Some(limit) => tokio::time::timeout(limit, self.result)
                .await
                .unwrap_or_else(|_| Err(ToolError::new("the tool's result did not come in time"))),
        }
    }
}

impl Completer {
    /// Gives the result; `false` if nobody waits any more, for example after a cancel.
    pub fn complete(self, result: Result<ToolOutput, ToolError>) -> bool {
        self.0.send(result).is_ok()
    }

    /// Ends when nobody waits any more.
    pub async fn abandoned(&mut self) {
        self.0.closed().await;
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Later")
            .field("within", &self.within)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Completer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Completer")
    }
}
