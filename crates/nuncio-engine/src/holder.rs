//! Who has a task: the agent of its address, until it hands the task over.
//!
//! It is kept in the task's checkpoint, and so goes with the task through pauses and crashes.

use std::sync::Arc;

use nuncio_protocol::{AgentId, Message};
use serde::{Deserialize, Serialize};

use crate::RunCx;
use crate::place::Place;

/// The agent that a task was handed over to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Holder {
    pub(crate) agent: AgentId,
    /// What it was told, instead of the message at this position.
    told: Message,
    position: u64,
}

impl Holder {
    /// What it was told, if it has to answer the message at this position with that.
    pub(crate) fn told(&self, position: u64) -> Option<&Message> {
        (self.position == position).then_some(&self.told)
    }
}

impl RunCx {
    /// The agent that the task was handed over to, if it was.
    pub(crate) fn holder(&self) -> Option<Holder> {
        self.inner.checkpoints.lock().holder.clone()
    }

    /// Hands the task over, while the message at this position is answered.
    pub(crate) fn hand_over(&self, agent: AgentId, mut told: Message, position: u64) {
        told.task_id = Some(self.task().clone());
        told.context_id = Some(self.context().clone());
        let holder = Holder {
            agent,
            told,
            position,
        };
        self.inner.checkpoints.lock().hand_over(holder);
    }

    /// All that has been left in this task, for its checkpoint.
    pub(crate) fn all_left(&self) -> Arc<str> {
        self.inner.checkpoints.lock().json().into()
    }

    /// The same run for the agent that has the task.
    pub(crate) fn of_holder(&self, agent: &AgentId) -> Self {
        let place = Place {
            agent: agent.clone(),
            text_artifact: Arc::default(),
            ..Place::clone(&self.place)
        };
        Self {
            inner: Arc::clone(&self.inner),
            place: Arc::new(place),
        }
    }
}
