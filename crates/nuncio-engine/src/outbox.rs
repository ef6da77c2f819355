//! What a run has emitted and the store has not yet taken.

use std::collections::HashMap;
use std::sync::Arc;

use nuncio_protocol::{Artifact, ArtifactId, Message, Task, TaskState};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::EmitError;

/// One thing emitted; ids and time are added when it is written.
#[derive(Debug)]
pub(crate) enum Emitted {
    Status(TaskState, Option<Message>),
    Artifact {
        artifact: Artifact,
        append: bool,
        last_chunk: bool,
    },
}

/// Events on their way to the store, in order; bounded.
#[derive(Debug)]
pub(crate) struct Outbox {
    inner: Mutex<Inner>,
    /// Something is waiting to be written.
    pub(crate) filled: Notify,
    space: Notify,
    capacity: usize,
}

#[derive(Debug)]
struct Inner {
    events: Vec<Emitted>,
    checkpoint: Option<Arc<str>>,
    state: TaskState,
    artifacts: Artifacts,
    closed: bool,
}

/// Artifacts begun, and whether their last chunk has come (ART-03).
#[derive(Debug, Default)]
pub(crate) struct Artifacts(HashMap<ArtifactId, bool>);

/// What one write takes along.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) events: Vec<Emitted>,
    pub(crate) checkpoint: Option<Arc<str>>,
}

impl Batch {
    /// Takes back the end of the task: there is more to answer.
    pub(crate) fn go_on(&mut self) {
        match self.events.pop() {
            Some(Emitted::Status(TaskState::Completed, None)) | None => {}
            Some(Emitted::Status(TaskState::Completed, said)) => {
                self.events.push(Emitted::Status(TaskState::Working, said));
            }
            Some(other) => self.events.push(other),
        }
    }
}

impl Outbox {
    pub(crate) fn new(task: &Task, capacity: usize) -> Self {
        let artifacts = task
            .artifacts
            .iter()
            .map(|a| (a.artifact_id.clone(), false))
            .collect();
        let inner = Inner {
            events: Vec::new(),
            checkpoint: None,
            state: task.status.state,
            artifacts: Artifacts(artifacts),
            closed: false,
        };
        Self {
            inner: Mutex::new(inner),
            filled: Notify::new(),
            space: Notify::new(),
            capacity,
        }
    }

    /// Adds an event, waiting while too many wait for the store.
    pub(crate) async fn push(&self, event: Emitted) -> Result<(), EmitError> {
        let mut event = Some(event);
        loop {
            let space = self.space.notified();
            {
                let mut inner = self.inner.lock();
                if inner.closed {
                    return Err(EmitError::Ended);
                }
                if inner.events.len() < self.capacity
                    && let Some(event) = event.take()
                {
                    inner.check_and_push(event)?;
                    break;
                }
            }
            space.await;
        }
        self.filled.notify_one();
        Ok(())
    }

    /// Notes a checkpoint, written with the next commit.
    pub(crate) fn checkpoint(&self, json: Arc<str>) -> Result<(), EmitError> {
        let mut inner = self.inner.lock();
        if inner.closed {
            return Err(EmitError::Ended);
        }
        inner.checkpoint = Some(json);
        drop(inner);
        self.filled.notify_one();
        Ok(())
    }

    /// Says WORKING if the run has not said where it stands.
    pub(crate) fn ensure_working(&self) {
        let mut inner = self.inner.lock();
        if !inner.closed && inner.ensure_working() {
            drop(inner);
            self.filled.notify_one();
        }
    }

    /// Takes everything, to be written.
    pub(crate) fn take(&self) -> Batch {
        let mut inner = self.inner.lock();
        let batch = Batch {
            events: std::mem::take(&mut inner.events),
            checkpoint: inner.checkpoint.take(),
        };
        drop(inner);
        self.space.notify_waiters();
        batch
    }

    /// Whether the task has an artifact whose last chunk has not come.
    pub(crate) fn has_open(&self, id: &ArtifactId) -> bool {
        self.inner.lock().artifacts.has_open(id)
    }

    /// Whether nothing has been emitted since the last write.
    pub(crate) fn is_empty(&self) -> bool {
        let inner = self.inner.lock();
        inner.events.is_empty() && inner.checkpoint.is_none()
    }

    /// Takes no further events: the run is over.
    pub(crate) fn close(&self) {
        self.inner.lock().closed = true;
        self.space.notify_waiters();
    }

    /// Begins a further turn of the same run, in the state that was written last.
    pub(crate) fn resume_from(&self, state: TaskState) {
        self.inner.lock().state = state;
    }
}

impl Artifacts {
    pub(crate) fn has(&self, id: &ArtifactId) -> bool {
        self.0.contains_key(id)
    }

    /// Whether there is an artifact whose last chunk has not come.
    pub(crate) fn has_open(&self, id: &ArtifactId) -> bool {
        self.0.get(id) == Some(&false)
    }

    /// Takes note of an artifact that is there and may be gone on with.
    pub(crate) fn open(&mut self, artifact: &Artifact) {
        self.0.insert(artifact.artifact_id.clone(), false);
    }

    /// Takes note of a piece, if it may come now.
    pub(crate) fn check(
        &mut self,
        artifact: &Artifact,
        append: bool,
        last: bool,
    ) -> Result<(), EmitError> {
        let id = &artifact.artifact_id;
        let invalid = |text: String| Err(EmitError::Invalid(text));
        if id.is_empty() {
            return invalid("an artifact needs an id".to_owned());
        }
        if artifact.parts.is_empty() {
            return invalid(format!("artifact {id} has no parts"));
        }
        match (append, self.0.get(id)) {
            (true, None) => {
                return invalid(format!("artifact {id} is appended to, but does not exist"));
            }
            (true, Some(true)) => {
                return invalid(format!("artifact {id} is appended to after its last chunk"));
            }
            _ => {}
        }
        self.0.insert(id.clone(), last);
        Ok(())
    }
}

impl Inner {
    fn check_and_push(&mut self, event: Emitted) -> Result<(), EmitError> {
        match &event {
            Emitted::Status(state, _) => {
                self.state = self
                    .state
                    .next(*state)
                    .map_err(|e| EmitError::Invalid(e.to_string()))?;
            }
            Emitted::Artifact {
                artifact,
                append,
                last_chunk,
            } => {
                self.artifacts.check(artifact, *append, *last_chunk)?;
                self.ensure_working();
            }
        }
        self.events.push(event);
        Ok(())
    }

    fn ensure_working(&mut self) -> bool {
        let begin = self.state == TaskState::Submitted || self.state.is_interrupted();
        if begin {
            self.state = TaskState::Working;
            self.events.push(Emitted::Status(TaskState::Working, None));
        }
        begin
    }
}
