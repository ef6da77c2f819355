//! Tasks as the engine would write them: folded by the reducer, committed piece by piece.

use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::{
    Artifact, ContextId, Event, Message, Part, StreamResponse, Task, TaskArtifactUpdateEvent,
    TaskId, TaskPushNotificationConfig, TaskState, TaskStatus, TaskStatusUpdateEvent, Timestamp,
    Version,
};
use nuncio_store::{Append, Idempotency, Lease, LeaseChange, NewTask, Scope, Webhook};

pub(crate) fn scope(caller: &str) -> Scope {
    Scope {
        workspace: "default".into(),
        agent: "echo".into(),
        caller: caller.into(),
    }
}

pub(crate) fn at(ms: i64) -> Timestamp {
    Timestamp::from_unix_ms(1_700_000_000_000 + ms)
}

/// A lease that no test outlives.
pub(crate) fn lease(owner: &str) -> Lease {
    lease_for(owner, Duration::from_secs(3_600))
}

/// A lease that is over as soon as it is given.
pub(crate) fn lapsed(owner: &str) -> Lease {
    lease_for(owner, Duration::ZERO)
}

fn lease_for(owner: &str, term: Duration) -> Lease {
    Lease {
        owner: owner.into(),
        term,
    }
}

/// A webhook of version 1.0.
pub(crate) fn webhook(task: TaskId, id: &str, url: &str) -> Webhook {
    let mut config = TaskPushNotificationConfig::default();
    (config.task_id, config.id) = (Some(task), Some(id.into()));
    config.url = url.to_owned();
    Webhook {
        config,
        version: Version::V1_0,
    }
}

pub(crate) fn key(key: &str, request: u8) -> Idempotency {
    Idempotency {
        key: key.to_owned(),
        request_hash: [request; 32],
    }
}

/// A task on its way into a store.
pub(crate) struct Draft {
    pub(crate) scope: Scope,
    pub(crate) task: Task,
    pub(crate) log: Vec<Event>,
    pub(crate) stored: usize,
    pub(crate) status_time: Timestamp,
}

impl Draft {
    /// A submitted task of a context of its own.
    pub(crate) fn new(caller: &str, id: &str, ms: i64) -> Self {
        Self::of_context(caller, id, &format!("context of {id}"), ms)
    }

    pub(crate) fn of_context(caller: &str, id: &str, context: &str, ms: i64) -> Self {
        let status = TaskStatus::new(TaskState::Submitted, at(ms));
        let mut task = Task::new(id.into(), context.into(), status);
        task.history
            .push(Message::user(format!("{id}/1"), vec![Part::text("hello")]));
        let first = Event::new(Some(1), StreamResponse::Task(task.clone()));
        Self {
            scope: scope(caller),
            task,
            log: vec![first],
            stored: 0,
            status_time: at(ms),
        }
    }

    pub(crate) fn id(&self) -> TaskId {
        self.task.id.clone()
    }

    pub(crate) fn context(&self) -> ContextId {
        self.task.context_id.clone().unwrap()
    }

    pub(crate) fn tell(&mut self, response: StreamResponse) -> &mut Self {
        self.task.apply(&response).unwrap();
        let position = self.log.len() as u64 + 1;
        self.log.push(Event::new(Some(position), response));
        self
    }

    pub(crate) fn status(&mut self, state: TaskState, ms: i64) -> &mut Self {
        self.status_time = at(ms);
        let mut status = TaskStatus::new(state, at(ms));
        let said = format!("{}/status {}", self.task.id, self.log.len());
        status.message = Some(Message::agent(said, vec![Part::text(state.as_str())]));
        let update = TaskStatusUpdateEvent::new(self.id(), self.context(), status);
        self.tell(StreamResponse::StatusUpdate(update))
    }

    pub(crate) fn message(&mut self, text: &str) -> &mut Self {
        let id = format!("{}/{}", self.task.id, self.log.len());
        let message = Message::user(id, vec![Part::text(text)]);
        self.tell(StreamResponse::Message(message))
    }

    pub(crate) fn artifact(&mut self, artifact: &str, text: &str) -> &mut Self {
        let known = self.task.artifacts.iter();
        let append = known
            .into_iter()
            .any(|known| known.artifact_id.as_str() == artifact);
        let piece = Artifact::new(artifact, vec![Part::text(text)]);
        let mut update = TaskArtifactUpdateEvent::new(self.id(), self.context(), piece);
        update.append = append;
        self.tell(StreamResponse::ArtifactUpdate(update))
    }

    /// The first commit: everything told so far, leased to "process" for an hour.
    pub(crate) fn create(&mut self) -> NewTask {
        self.stored = self.log.len();
        let running = matches!(
            self.task.status.state,
            TaskState::Submitted | TaskState::Working
        );
        NewTask {
            scope: self.scope.clone(),
            context: self.context(),
            events: self.log.clone(),
            task: self.task.clone().into(),
            snapshot: !running,
            idempotency: None,
            lease: running.then(|| lease("process")),
            checkpoint: None,
            request: None,
            push_config: None,
        }
    }

    /// As [`Draft::create`], by a process that has not been heard of since.
    pub(crate) fn create_lapsed(&mut self) -> NewTask {
        NewTask {
            lease: Some(lapsed("process")),
            ..self.create()
        }
    }

    /// The next commit: what was told since the last one. Terminal ones carry a snapshot.
    pub(crate) fn append(&mut self) -> Append {
        let after = std::mem::replace(&mut self.stored, self.log.len());
        let state = self.task.status.state;
        let rests = state.is_terminal() || state.is_interrupted();
        Append {
            scope: self.scope.clone(),
            task: self.id(),
            after: after as u64,
            epoch: None,
            events: self.log[after..].to_vec(),
            state,
            status_time: self.status_time,
            snapshot: rests.then(|| Arc::new(self.task.clone())),
            lease: if rests {
                LeaseChange::Release
            } else {
                LeaseChange::Keep
            },
            turn: None,
            checkpoint: None,
            request: None,
            idempotency: None,
            push_config: None,
        }
    }

    /// The commit that ends the task.
    pub(crate) fn complete(&mut self, ms: i64) -> Append {
        self.artifact("result", "done");
        self.status(TaskState::Completed, ms).append()
    }
}
