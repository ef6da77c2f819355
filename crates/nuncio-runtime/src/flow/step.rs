//! One step of a flow: a member gets a message, once, however often the flow is played.

use std::sync::Arc;

use nuncio_engine::{
    Agent, AgentError, EmitError, Gathered, Input, Outcome, Pause, RunCx, SpanKind,
};
use nuncio_protocol::{AgentId, Artifact, Message, Part, Role};
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::FindAgent;
use super::journal::{Journal, Step, StepState};
use super::output::Output;

/// How often members may hand one step over.
const MAX_HAND_OFFS: usize = 5;

/// Why a flow goes no further.
#[derive(Debug)]
pub(super) enum Stop {
    /// A member asks.
    Paused {
        place: String,
        pause: Box<Pause>,
    },
    Rejected(String),
    Failed(AgentError),
    /// The task, or this part of it, is canceled.
    Canceled,
}

impl From<EmitError> for Stop {
    fn from(error: EmitError) -> Self {
        Self::Failed(error.into())
    }
}

impl Stop {
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::Failed(AgentError::new(message))
    }

    fn paused(place: &str, pause: Pause) -> Self {
        Self::Paused {
            place: place.to_owned(),
            pause: Box::new(pause),
        }
    }
}

/// Where the artifacts of a step go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// Into the task, as they come.
    Task,
    /// To the flow.
    Flow,
}

/// A flow being played.
pub(super) struct Flow<'a> {
    cx: &'a RunCx,
    input: &'a Input,
    agents: &'a dyn FindAgent,
    journal: Mutex<Journal>,
    /// What cancels the steps that run.
    cancels: Mutex<Vec<CancellationToken>>,
}

impl<'a> Flow<'a> {
    pub(super) fn new(
        cx: &'a RunCx,
        input: &'a Input,
        agents: &'a dyn FindAgent,
        journal: Journal,
    ) -> Self {
        Self {
            cx,
            input,
            agents,
            journal: Mutex::new(journal),
            cancels: Mutex::default(),
        }
    }

    /// Whether the whole flow is canceled.
    pub(super) fn is_canceled(&self) -> bool {
        self.cx.cancellation().is_cancelled()
    }

    /// Cancels all steps that run.
    pub(super) fn cancel_steps(&self) {
        for cancel in self.cancels.lock().drain(..) {
            cancel.cancel();
        }
    }

    /// Notes whose question the user sees.
    pub(super) fn wait_for(&self, place: String) -> Result<(), EmitError> {
        self.journal.lock().waiting = Some(place);
        self.save()
    }

    /// The message that the flow answers.
    pub(super) fn message(&self) -> Message {
        self.journal.lock().message.clone()
    }

    /// What the next member is told when one has given this.
    pub(super) fn passed_on(&self, output: &Output) -> Message {
        let mut message = self.message();
        message.parts = output.parts();
        message.metadata = None;
        message.extensions.clear();
        message
    }

    /// Writes the journal down, with the next events of the run.
    fn save(&self) -> Result<(), EmitError> {
        self.cx.checkpoint(&json!(*self.journal.lock()))
    }

    /// Makes what a member gave the task's. A `prefix` keeps ids of several members apart.
    pub(super) async fn emit(&self, output: &Output, prefix: Option<&str>) -> Result<(), Stop> {
        for artifact in &output.artifacts {
            let mut artifact = artifact.clone();
            if let Some(prefix) = prefix {
                artifact.artifact_id = format!("{prefix}.{}", artifact.artifact_id).into();
            }
            self.cx.artifact(artifact).await?;
        }
        Ok(())
    }

    /// Lets a member answer a message at a place of the flow, which names the step for good.
    ///
    /// A step that is done gives what it gave before; one that waits for an answer stops the flow.
    pub(super) async fn step(
        &self,
        place: &str,
        member: &AgentId,
        message: Message,
        to: To,
    ) -> Result<Output, Stop> {
        match self.open(place, member, message)? {
            StepState::Done(output) => return Ok(output),
            StepState::Paused(pause) => return Err(Stop::paused(place, pause.into())),
            StepState::Open => {}
        }
        loop {
            match self.run(place, to).await? {
                Ended::Done(output) => {
                    self.close(place, StepState::Done(output.clone()))?;
                    return Ok(output);
                }
                Ended::Paused(pause, given) => {
                    self.put_by(place, given);
                    self.close(place, StepState::Paused(pause.clone().into()))?;
                    return Err(Stop::paused(place, pause));
                }
                Ended::HandedOver(agent, message, given) => {
                    self.put_by(place, given);
                    self.hand_over(place, agent, message)?;
                }
            }
        }
    }

    /// How far a step is; a new one is written down.
    fn open(&self, place: &str, member: &AgentId, message: Message) -> Result<StepState, Stop> {
        let mut journal = self.journal.lock();
        if let Some(step) = journal.steps.get(place) {
            return Ok(step.state.clone());
        }
        let step = Step {
            agent: member.clone(),
            hand_offs: 0,
            told: vec![at_place(message, place)],
            given: Vec::new(),
            state: StepState::Open,
        };
        journal.steps.insert(place.to_owned(), step);
        drop(journal);
        self.save()?;
        Ok(StepState::Open)
    }

    /// Puts by what a step has given so far, for whoever goes on with it.
    fn put_by(&self, place: &str, given: Vec<Artifact>) {
        if let Some(step) = self.journal.lock().steps.get_mut(place) {
            step.given = given;
        }
    }

    fn close(&self, place: &str, state: StepState) -> Result<(), Stop> {
        if let Some(step) = self.journal.lock().steps.get_mut(place) {
            if let StepState::Done(_) = state {
                step.given.clear();
            }
            step.state = state;
        }
        Ok(self.save()?)
    }

    fn hand_over(&self, place: &str, agent: AgentId, message: Message) -> Result<(), Stop> {
        let mut journal = self.journal.lock();
        let Some(step) = journal.steps.get_mut(place) else {
            return Ok(());
        };
        step.hand_offs += 1;
        if step.hand_offs > MAX_HAND_OFFS {
            return Err(Stop::failed("too many hand-offs from agent to agent"));
        }
        let at = child_place(place, step.hand_offs);
        step.agent = agent;
        step.told = vec![at_place(message, &at)];
        drop(journal);
        Ok(self.save()?)
    }

    /// Runs whoever works on a step.
    async fn run(&self, place: &str, to: To) -> Result<Ended, Stop> {
        let (id, at, told, given) = {
            let journal = self.journal.lock();
            let step = journal.steps.get(place);
            let step = step.ok_or_else(|| Stop::failed("a step of the flow is lost"))?;
            let at = child_place(place, step.hand_offs);
            (
                step.agent.clone(),
                at,
                step.told.clone(),
                step.given.clone(),
            )
        };
        let agent = self.find(&id)?;
        let span = self.cx.span(SpanKind::Agent, format!("invoke_agent {id}"));
        let within = self.cx.within(&span);
        let (child, gathered) = match to {
            To::Task => (within.child(&id, &at).map_err(Stop::Failed)?, None),
            To::Flow => {
                let child = within.gathering_child(&id, &at);
                let (child, gathered) = child.map_err(Stop::Failed)?;
                gathered.begin_with(given);
                (child, Some(gathered))
            }
        };
        self.cancels.lock().push(child.cancellation().clone());
        let outcome = agent.run(&child, self.input_of(&child, told)).await;
        if child.cancellation().is_cancelled() {
            return Err(Stop::Canceled);
        }
        let given = || gathered.as_ref().map_or_else(Vec::new, Gathered::artifacts);
        let said = match outcome {
            Ok(Outcome::Done) => None,
            Ok(Outcome::Said(message)) => Some(message),
            Ok(Outcome::Reply(message)) => {
                let id = child.next_id();
                let mut artifact = Artifact::new(id, message.parts);
                artifact.metadata = message.metadata;
                artifact.extensions = message.extensions;
                child.artifact(artifact).await?;
                None
            }
            Ok(Outcome::Paused(pause)) => return Ok(Ended::Paused(pause, given())),
            Ok(Outcome::HandOff { agent, message }) => {
                return Ok(Ended::HandedOver(agent, message, given()));
            }
            Ok(Outcome::Rejected(reason)) => {
                return Err(Stop::Rejected(format!("agent {id}: {reason}")));
            }
            Err(error) => {
                span.fail(error.message());
                let message = format!("agent {id} failed: {}", error.message());
                return Err(Stop::Failed(AgentError::caused(message, error)));
            }
        };
        child.forget()?;
        let artifacts = given();
        Ok(Ended::Done(Output { artifacts, said }))
    }

    fn find(&self, id: &AgentId) -> Result<Arc<dyn Agent>, Stop> {
        let found = self.agents.find(id);
        found.ok_or_else(|| Stop::failed(format!("agent {id}, which the flow needs, is not there")))
    }

    /// What a member is given: the task, with what has been said in its own step as the history.
    fn input_of(&self, child: &RunCx, told: Vec<Message>) -> Input {
        let message = told.last().cloned().unwrap_or_else(|| self.message());
        let mut input = self.input.for_child(child, message);
        let mut task = nuncio_protocol::Task::clone(&input.task);
        task.history = told;
        task.artifacts.clear();
        input.task = Arc::new(task);
        input
    }
}

/// How a member's run ended.
enum Ended {
    Done(Output),
    /// With what it has given to the flow so far.
    Paused(Pause, Vec<Artifact>),
    HandedOver(AgentId, Message, Vec<Artifact>),
}

/// The message as a member gets it: to answer, and with an id of its own for this place, the same
/// whenever the flow is played.
fn at_place(mut message: Message, place: &str) -> Message {
    message.role = Role::User;
    message.message_id = format!("{}:{place}", message.message_id).into();
    if message.parts.is_empty() {
        message.parts.push(Part::text(""));
    }
    message
}

/// Who takes a step over finds nothing of the one before.
fn child_place(place: &str, hand_offs: usize) -> String {
    match hand_offs {
        0 => place.to_owned(),
        n => format!("{place}~{n}"),
    }
}
