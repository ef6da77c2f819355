//! What a run can see and do.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use nuncio_protocol::{
    AgentId, Artifact, ArtifactId, Caller, ContextId, Message, Metadata, Part, SpanSink, TaskId,
    TaskState,
};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Environment;
use crate::cell::Queue;
use crate::chain::Chain;
use crate::outbox::{Emitted, Outbox};
use crate::place::{Checkpoints, Place};
use crate::rerun::Rerun;
use crate::session::Sessions;
use crate::span::{RunTrace, Tree};

/// Why an event was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// The run is over: canceled, timed out, or lost to another process.
    #[error("the run is over")]
    Ended,
    /// The event breaks a rule of the protocol; the text says which.
    #[error("{0}")]
    Invalid(String),
}

/// A run's view of the world: who asks, what it may do, and where its events go.
///
/// Cheap to clone; a clone may be handed to tasks of its own. Events are stored in the order in
/// which they are emitted, before anybody sees them. Emitting waits when the store is behind.
#[derive(Clone, Debug)]
pub struct RunCx {
    pub(crate) inner: Arc<RunInner>,
    pub(crate) place: Arc<Place>,
}

#[derive(Debug)]
pub(crate) struct RunInner {
    pub(crate) caller: Caller,
    pub(crate) agent: AgentId,
    pub(crate) context: ContextId,
    pub(crate) task: TaskId,
    pub(crate) attempt: AtomicU64,
    /// The number of the run; the store takes nothing of an older one.
    pub(crate) epoch: u64,
    pub(crate) cancel: CancellationToken,
    pub(crate) deadline: Instant,
    pub(crate) trace: RunTrace,
    pub(crate) chain: Chain,
    pub(crate) environment: Environment,
    pub(crate) spans: Option<Arc<dyn SpanSink>>,
    pub(crate) sessions: Sessions,
    pub(crate) outbox: Outbox,
    pub(crate) queue: Queue,
    pub(crate) checkpoints: Mutex<Checkpoints>,
    pub(crate) tree: Mutex<Tree>,
    pub(crate) cancel_metadata: Mutex<Option<Metadata>>,
    /// What the run repeats, if it does.
    pub(crate) rerun: OnceLock<Rerun>,
}

impl RunCx {
    /// Who asks, as the credential says.
    pub fn caller(&self) -> &Caller {
        &self.inner.caller
    }

    /// The agent at work: the task's, or one that [works for it](Self::child).
    pub fn agent(&self) -> &AgentId {
        &self.place.agent
    }

    /// The conversation.
    pub fn context(&self) -> &ContextId {
        &self.inner.context
    }

    /// The task.
    pub fn task(&self) -> &TaskId {
        &self.inner.task
    }

    /// 1 for the first run of a message, more after a crash.
    pub fn attempt(&self) -> u64 {
        self.inner.attempt.load(Ordering::Relaxed)
    }

    /// Fires when the task is canceled; a run that does not end soon after is dropped.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.place.cancel
    }

    /// The free-form additions of the request that canceled the task.
    pub fn cancel_metadata(&self) -> Option<Metadata> {
        self.inner.cancel_metadata.lock().clone()
    }

    /// When the run will be ended as failed.
    pub fn deadline(&self) -> Instant {
        self.inner.deadline
    }

    /// A fresh identifier.
    pub fn next_id(&self) -> String {
        self.inner.environment.ids.next()
    }

    /// A message of the agent in this task's conversation.
    pub fn message(&self, parts: Vec<Part>) -> Message {
        let mut message = Message::agent(self.next_id(), parts);
        message.context_id = Some(self.inner.context.clone());
        message.task_id = Some(self.inner.task.clone());
        message
    }

    /// Says that work has begun, without a word; an agent that may answer directly begins its task.
    ///
    /// # Errors
    /// [`EmitError`].
    pub async fn working(&self) -> Result<(), EmitError> {
        self.push(Emitted::Status(TaskState::Working, None)).await
    }

    /// Says that work goes on, with a word about it.
    ///
    /// # Errors
    /// [`EmitError`].
    pub async fn status(&self, text: impl Into<String>) -> Result<(), EmitError> {
        self.say(self.message(vec![Part::text(text)])).await
    }

    /// Says that work goes on, with a message about it.
    ///
    /// # Errors
    /// [`EmitError`].
    pub async fn say(&self, message: Message) -> Result<(), EmitError> {
        match &self.place.listener {
            Some(listener) => listener.hear(message).await,
            None => {
                self.push(Emitted::Status(TaskState::Working, Some(message)))
                    .await
            }
        }
    }

    /// Gives a whole artifact, or replaces the one of the same id.
    ///
    /// # Errors
    /// [`EmitError`].
    pub async fn artifact(&self, artifact: Artifact) -> Result<(), EmitError> {
        self.chunk(artifact, false, true).await
    }

    /// Gives a piece of an artifact: `append` adds to the one of the same id, `last` ends it.
    ///
    /// # Errors
    /// [`EmitError::Invalid`] for appending to an artifact that does not exist or has ended.
    pub async fn chunk(
        &self,
        artifact: Artifact,
        append: bool,
        last: bool,
    ) -> Result<(), EmitError> {
        let piece = Emitted::Artifact {
            artifact,
            append,
            last_chunk: last,
        };
        match &self.place.gathered {
            Some(gathered) => gathered.take(piece),
            None => self.push(piece).await,
        }
    }

    async fn push(&self, event: Emitted) -> Result<(), EmitError> {
        self.inner.outbox.push(event).await
    }

    /// Adds to the one text artifact of this run, as a streaming model gives its answer.
    ///
    /// # Errors
    /// [`EmitError`].
    pub async fn text(&self, delta: impl Into<String>) -> Result<(), EmitError> {
        let (id, append) = self.text_artifact_id();
        self.chunk(Artifact::new(id, vec![Part::text(delta)]), append, false)
            .await
    }

    fn text_artifact_id(&self) -> (ArtifactId, bool) {
        let mut known = self.place.text_artifact.lock();
        match &*known {
            Some(id) => (id.clone(), true),
            None => (known.insert(self.next_id().into()).clone(), false),
        }
    }

    /// Takes the next message that came while the run works, so that it gets no run of its own; none
    /// where it is to get one all the same, such as within layers that look at messages.
    pub fn take_message(&self) -> Option<Message> {
        if self.place.apart {
            return None;
        }
        self.inner.queue.take().map(|queued| queued.message)
    }
}
