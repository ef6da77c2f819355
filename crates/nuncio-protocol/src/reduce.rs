//! The one reducer: how events fold into a task. Spec: §3.5.2, §4.2
//!
//! Engine, store, client and console fold with [`Task::apply`] and nothing else, so that a
//! snapshot plus its tail, a live view and a client's view are the same task.

use crate::{
    Artifact, IllegalTransition, Message, StreamResponse, Task, TaskArtifactUpdateEvent, TaskStatus,
};

/// An event that does not fit the task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReduceError {
    /// The state rule forbids it.
    #[error(transparent)]
    Transition(#[from] IllegalTransition),
    /// A piece of an artifact that was never begun (ART-02).
    #[error("artifact {0} is appended to, but does not exist")]
    UnknownArtifact(crate::ArtifactId),
    /// It speaks of another task.
    #[error("the event belongs to another task")]
    OtherTask,
}

impl Task {
    /// Folds one event into the task.
    ///
    /// `Task` replaces everything, unless the task has ended; a message joins the history; a status moves the former status message to the history; an
    /// artifact is created, replaced in place, or appended to (parts concatenate, name and
    /// description overwrite, metadata merges, extensions unite). Event metadata is not kept
    /// (EV-07, EV-08, ART-01, ART-04, ST-06).
    ///
    /// # Errors
    /// [`ReduceError`]; the task is then unchanged.
    pub fn apply(&mut self, event: &StreamResponse) -> Result<(), ReduceError> {
        match event {
            StreamResponse::Task(task) if task.id == self.id => {
                if task != self {
                    self.still_open()?;
                    *self = task.clone();
                }
                Ok(())
            }
            StreamResponse::StatusUpdate(update) if update.task_id == self.id => {
                self.apply_status(&update.status)
            }
            StreamResponse::ArtifactUpdate(update) if update.task_id == self.id => {
                self.apply_artifact(update)
            }
            StreamResponse::Message(message) => self.apply_message(message),
            _ => Err(ReduceError::OtherTask),
        }
    }

    /// Folds a status: checks the transition, moves the old status message to the history.
    ///
    /// # Errors
    /// [`ReduceError::Transition`].
    pub fn apply_status(&mut self, status: &TaskStatus) -> Result<(), ReduceError> {
        self.status.state.next(status.state)?;
        self.retire_status_message();
        self.status = status.clone();
        Ok(())
    }

    /// Moves the message of the present status to the history, if it is not there yet.
    pub fn retire_status_message(&mut self) {
        let Some(message) = self.status.message.take() else {
            return;
        };
        let known = !message.message_id.is_empty()
            && self
                .history
                .iter()
                .any(|said| said.message_id == message.message_id);
        if !known {
            self.history.push(message);
        }
    }

    /// Folds a message of the user: the question it may answer goes to the history first.
    ///
    /// # Errors
    /// [`ReduceError::Transition`] if the task has ended.
    pub fn apply_message(&mut self, message: &Message) -> Result<(), ReduceError> {
        self.still_open()?;
        self.retire_status_message();
        self.history.push(message.clone());
        Ok(())
    }

    fn still_open(&self) -> Result<(), IllegalTransition> {
        let state = self.status.state;
        if state.is_terminal() {
            Err(IllegalTransition {
                from: state,
                to: state,
            })
        } else {
            Ok(())
        }
    }

    fn apply_artifact(&mut self, update: &TaskArtifactUpdateEvent) -> Result<(), ReduceError> {
        self.still_open()?;
        let id = &update.artifact.artifact_id;
        let known = self
            .artifacts
            .iter_mut()
            .find(|artifact| artifact.artifact_id == *id);
        match (known, update.append) {
            (Some(artifact), true) => artifact.append(&update.artifact),
            (Some(artifact), false) => *artifact = update.artifact.clone(),
            (None, false) => {
                // Most tasks have one: no room is kept for others.
                if self.artifacts.is_empty() {
                    self.artifacts.reserve_exact(1);
                }
                self.artifacts.push(update.artifact.clone());
            }
            (None, true) => return Err(ReduceError::UnknownArtifact(id.clone())),
        }
        Ok(())
    }

    /// Folds as a reader who may have joined late: what does not fit is taken as well as it can.
    ///
    /// An appended piece of an unknown artifact begins it (ART-02); an illegal state is shown; a
    /// whole task replaces also one that has ended, as the last item of a stream may (EV-06).
    pub fn apply_leniently(&mut self, event: &StreamResponse) {
        match (self.apply(event), event) {
            (Err(ReduceError::UnknownArtifact(_)), StreamResponse::ArtifactUpdate(update)) => {
                self.artifacts.push(update.artifact.clone());
            }
            (Err(ReduceError::Transition(_)), StreamResponse::Task(task)) => *self = task.clone(),
            (Err(ReduceError::Transition(_)), StreamResponse::StatusUpdate(update))
                if !self.status.state.is_terminal() =>
            {
                self.retire_status_message();
                self.status = update.status.clone();
            }
            _ => {}
        }
    }
}

impl Artifact {
    /// Adds a further piece of the same artifact (ART-04).
    pub fn append(&mut self, piece: &Artifact) {
        self.parts.extend(piece.parts.iter().cloned());
        if piece.name.as_ref().is_some_and(|name| !name.is_empty()) {
            self.name.clone_from(&piece.name);
        }
        if piece.description.as_ref().is_some_and(|d| !d.is_empty()) {
            self.description.clone_from(&piece.description);
        }
        if let Some(added) = &piece.metadata {
            self.metadata.get_or_insert_default().extend(
                added
                    .iter()
                    .map(|(key, value)| (key.clone(), value.clone())),
            );
        }
        for uri in &piece.extensions {
            if !self.extensions.contains(uri) {
                self.extensions.push(uri.clone());
            }
        }
    }
}

/// Keeps the newest `length` messages: `None` keeps all, `Some(0)` none. Spec: §3.2.4
pub fn limit_history(history: &mut Vec<Message>, length: Option<i32>) {
    if let Some(length) = length {
        let keep = usize::try_from(length).unwrap_or(0);
        let drop = history.len().saturating_sub(keep);
        history.drain(..drop);
    }
}
