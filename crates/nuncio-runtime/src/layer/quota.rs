//! How much one caller may have of one agent.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use nuncio_engine::{AgentError, Input, RunCx, SystemClock};
use nuncio_protocol::{AgentId, Caller, Clock, Timestamp};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

use super::{Layer, LayerError, LayerFuture};
use crate::model::{ModelRequest, Usage};

/// How much each caller may have of each agent within it: runs in a minute, tokens in a day (UTC).
/// Nothing is limited unless it is said.
///
/// A run is the answer to one message; a run that a crash repeats counts once. Runs are counted in
/// this process. Tokens are counted as models' providers count them, and kept with the caller's state:
/// they hold after a restart, and in one process none is missed. Servers that share a store count
/// together, but of answers that end on two of them at the same moment one may be missed. A run that
/// begins below the limit may end above it by one answer of a model; then it fails.
///
/// What is too much is REJECTED, with words that say when it is possible again; a task that waits for
/// an answer waits on.
///
/// ```
/// use nuncio_runtime::layer::Quota;
///
/// let fair = Quota::new("fair").runs_per_minute(30).tokens_per_day(200_000);
/// # let _ = fair;
/// ```
pub struct Quota {
    /// The state in which tokens are kept.
    state: String,
    runs_per_minute: Option<u32>,
    tokens_per_day: Option<u64>,
    clock: Arc<dyn Clock>,
    runs: Mutex<Runs>,
    /// One caller's tokens are counted one after another.
    counting: [tokio::sync::Mutex<()>; COUNTERS],
    hasher: RandomState,
}

const COUNTERS: usize = 64;
const MINUTE: Duration = Duration::from_secs(60);
const DAY_MS: i64 = 86_400_000;
/// Callers of whom it is known when they came; above this those of whom nothing counts are forgotten.
const MANY: usize = 10_000;

type Key = (Caller, AgentId);

/// When the runs of the last minute began.
type Runs = HashMap<Key, VecDeque<Instant>>;

/// The tokens of a day, as they are kept.
#[derive(Default, Deserialize, Serialize)]
struct Used {
    /// Since 1970.
    day: i64,
    tokens: u64,
}

impl Quota {
    /// Without limits yet. The name tells its tokens from those of other quotas.
    pub fn new(name: impl fmt::Display) -> Self {
        Self {
            state: format!("caller:nuncio.quota.{name}"),
            runs_per_minute: None,
            tokens_per_day: None,
            clock: Arc::new(SystemClock),
            runs: Mutex::default(),
            counting: std::array::from_fn(|_| tokio::sync::Mutex::default()),
            hasher: RandomState::new(),
        }
    }

    /// So many runs within any minute.
    #[must_use]
    pub fn runs_per_minute(mut self, runs: u32) -> Self {
        self.runs_per_minute = Some(runs);
        self
    }

    /// So many tokens of models in a day (UTC).
    #[must_use]
    pub fn tokens_per_day(mut self, tokens: u64) -> Self {
        self.tokens_per_day = Some(tokens);
        self
    }

    /// The clock that says which day it is, instead of the machine's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Counts a run, or says when there may be one.
    fn begin(&self, cx: &RunCx) -> Result<(), LayerError> {
        let Some(limit) = self.runs_per_minute else {
            return Ok(());
        };
        let now = Instant::now();
        let mut all = self.runs.lock();
        if all.len() >= MANY {
            all.retain(|_, runs| runs.back().is_some_and(|last| now - *last < MINUTE));
        }
        let runs = all.entry(key(cx)).or_default();
        while runs.front().is_some_and(|first| now - *first >= MINUTE) {
            runs.pop_front();
        }
        if runs.len() < limit as usize {
            runs.push_back(now);
            return Ok(());
        }
        let wait = runs.front().map_or(MINUTE, |first| MINUTE - (now - *first));
        let seconds = wait.as_secs_f64().ceil();
        Err(LayerError::NotNow(format!(
            "no more than {limit} messages a minute are answered; try again in {seconds} seconds"
        )))
    }

    fn today(&self) -> i64 {
        self.clock.now().unix_ms().div_euclid(DAY_MS)
    }

    /// What has been used today.
    async fn tokens(&self, cx: &RunCx) -> Result<u64, AgentError> {
        let kept = cx.session().get(&self.state).await?;
        let used: Used = kept
            .and_then(|kept| serde_json::from_value(kept).ok())
            .unwrap_or_default();
        Ok(match used.day == self.today() {
            true => used.tokens,
            false => 0,
        })
    }

    async fn check_tokens(&self, cx: &RunCx) -> Result<(), LayerError> {
        let Some(limit) = self.tokens_per_day else {
            return Ok(());
        };
        if self.tokens(cx).await.map_err(LayerError::Failed)? < limit {
            return Ok(());
        }
        let tomorrow = Timestamp::from_unix_ms((self.today() + 1) * DAY_MS);
        Err(LayerError::NotNow(format!(
            "the {limit} tokens of this day are used; try again after {tomorrow}"
        )))
    }

    async fn add(&self, cx: &RunCx, tokens: u64) -> Result<(), AgentError> {
        let at = self.hasher.hash_one(key(cx)) as usize % COUNTERS;
        let _counting = self.counting[at].lock().await;
        let used = Used {
            day: self.today(),
            tokens: self.tokens(cx).await?.saturating_add(tokens),
        };
        Ok(cx.session().set(&self.state, json!(used)).await?)
    }
}

fn key(cx: &RunCx) -> Key {
    (cx.caller().clone(), cx.agent().clone())
}

impl fmt::Debug for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quota")
            .field("state", &self.state)
            .field("runs_per_minute", &self.runs_per_minute)
            .field("tokens_per_day", &self.tokens_per_day)
            .finish_non_exhaustive()
    }
}

impl Layer for Quota {
    fn input<'a>(&'a self, cx: &'a RunCx, input: Input) -> LayerFuture<'a, Input> {
        Box::pin(async move {
            if cx.attempt() == 1 {
                self.check_tokens(cx).await?;
                self.begin(cx)?;
            }
            Ok(input)
        })
    }

    fn model_request<'a>(
        &'a self,
        cx: &'a RunCx,
        request: ModelRequest,
    ) -> LayerFuture<'a, ModelRequest> {
        Box::pin(async move {
            self.check_tokens(cx).await?;
            Ok(request)
        })
    }

    fn used<'a>(&'a self, cx: &'a RunCx, usage: &'a Usage) -> LayerFuture<'a, ()> {
        Box::pin(async move {
            if self.tokens_per_day.is_none() || usage.total() == 0 {
                return Ok(());
            }
            self.add(cx, usage.total())
                .await
                .map_err(LayerError::Failed)
        })
    }
}
