//! Trying again, and trying another.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};

use super::{Model, ModelError, ModelFuture, ModelRequest, ModelStream};

/// How often one model is asked before the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often at most, the first time included; 3.
    pub tries: u32,
    /// The wait before the second try, doubled each time, half of it by chance; 500 ms.
    pub base_wait: Duration,
    /// The longest wait; a provider that asks for more is given up; 30 s.
    pub max_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            tries: 3,
            base_wait: Duration::from_millis(500),
            max_wait: Duration::from_secs(30),
        }
    }
}

/// Models that are asked in order, each as often as the policy says.
///
/// A model is asked again after an error that [may pass](ModelError::is_transient), and the next one
/// is asked after that or after a refused credential. Only before the first piece of an answer: what
/// has been seen is not taken back.
#[derive(Clone)]
pub struct ModelChain {
    models: Vec<Arc<dyn Model>>,
    policy: RetryPolicy,
}

impl fmt::Debug for ModelChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.models.iter().map(|model| model.name()).collect();
        f.debug_struct("ModelChain")
            .field("models", &names)
            .field("policy", &self.policy)
            .finish()
    }
}

impl ModelChain {
    /// A chain that begins with this model.
    pub fn new(first: Arc<dyn Model>) -> Self {
        Self {
            models: vec![first],
            policy: RetryPolicy::default(),
        }
    }

    /// The same chain with one more model to fall back on.
    #[must_use]
    pub fn or(mut self, next: Arc<dyn Model>) -> Self {
        self.models.push(next);
        self
    }

    /// The same chain under another policy.
    #[must_use]
    pub fn with_policy(mut self, policy: RetryPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Asks one model, several times if need be.
    async fn persist(
        &self,
        model: &dyn Model,
        request: &ModelRequest,
    ) -> Result<ModelStream, ModelError> {
        let mut attempt = 1;
        loop {
            let error = match begin(model, request.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let wait = self.wait(attempt, &error);
            tracing::warn!(model = model.name(), attempt, %error, retry = wait.is_some(), "a model did not answer");
            let Some(wait) = wait else { return Err(error) };
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    /// How long to wait before the next try, if there is to be one.
    fn wait(&self, attempt: u32, error: &ModelError) -> Option<Duration> {
        if !error.is_transient() || attempt >= self.policy.tries {
            return None;
        }
        let doubled = self.policy.base_wait * 2_u32.saturating_pow(attempt - 1);
        let own = doubled.min(self.policy.max_wait);
        let own = own / 2 + own.mul_f64(chance() / 2.0);
        let asked = error.retry_after().unwrap_or_default();
        (asked <= self.policy.max_wait).then(|| own.max(asked))
    }
}

impl Model for ModelChain {
    fn name(&self) -> &str {
        self.models[0].name()
    }

    fn generate(&self, request: ModelRequest) -> ModelFuture<'_, ModelStream> {
        Box::pin(async move {
            let mut models = self.models.iter();
            loop {
                let Some(model) = models.next() else {
                    return Err(ModelError::unavailable("no model is left to ask"));
                };
                match self.persist(model.as_ref(), &request).await {
                    Err(error) if falls_back(&error) && models.len() > 0 => {}
                    answer => return answer,
                }
            }
        })
    }
}

fn falls_back(error: &ModelError) -> bool {
    error.is_transient() || matches!(error, ModelError::Auth(_))
}

/// Asks for an answer and waits for its first piece, so that an error before it is seen here.
async fn begin(model: &dyn Model, request: ModelRequest) -> Result<ModelStream, ModelError> {
    let mut answer = model.generate(request).await?;
    match answer.next().await {
        Some(first) => {
            let first = first?;
            Ok(Box::pin(stream::iter([Ok(first)]).chain(answer)))
        }
        None => Err(ModelError::Cut("it has no piece at all".to_owned())),
    }
}

/// A number from 0 to 1, so that many who wait do not come back together.
fn chance() -> f64 {
    use std::hash::{BuildHasher as _, RandomState};
    let bits = RandomState::new().hash_one(0);
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}
