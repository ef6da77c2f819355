//! What a flow has done so far, kept with the task.

use std::collections::BTreeMap;

use nuncio_protocol::{AgentId, Artifact, Message};
use serde::{Deserialize, Serialize};

use super::output::Output;
use super::pause::KeptPause;

/// What a flow has done so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Journal {
    /// The message that the flow answers.
    pub(super) message: Message,
    /// By place.
    #[serde(default)]
    pub(super) steps: BTreeMap<String, Step>,
    /// The step whose question the user sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) waiting: Option<String>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Step {
    /// Who works on it: the member, or the one it has handed over to.
    pub(super) agent: AgentId,
    /// How often it has been handed over.
    #[serde(default)]
    pub(super) hand_offs: usize,
    /// What has been said in it, to the agent and by its questions; the last is to be answered.
    pub(super) told: Vec<Message>,
    /// What it gave to the flow before it paused or was handed over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) given: Vec<Artifact>,
    pub(super) state: StepState,
}

/// How far a step has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StepState {
    Open,
    Paused(KeptPause),
    Done(Output),
}

impl Journal {
    pub(super) fn new(message: Message) -> Self {
        Self {
            message,
            steps: BTreeMap::new(),
            waiting: None,
        }
    }

    /// Gives an answer to the step that asked, and to no other.
    pub(super) fn answer(&mut self, answer: Message) {
        let Some(step) = self.waiting.take().and_then(|at| self.steps.get_mut(&at)) else {
            return;
        };
        if let StepState::Paused(pause) = &step.state {
            step.told.push(pause.prompt.clone());
        }
        step.told.push(answer);
        step.state = StepState::Open;
    }
}
