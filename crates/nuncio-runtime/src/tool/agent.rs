//! Another agent as a tool: called, and its answer returned to the model.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use nuncio_engine::{Agent, Gathered, Input, Outcome, RunCx};
use nuncio_protocol::{Artifact, Message, Part, Task};
use serde_json::{Value, json};

use super::{Tool, ToolCx, ToolError, ToolFuture, ToolOutput, ToolSpec};
use crate::parts::joined;

/// An agent of this server or elsewhere that the model asks as it calls a tool.
///
/// The model writes a message; the agent's words and artifacts are the result. What the agent asks
/// pauses the task, and the answer goes to the agent as it came, files included. It runs below the
/// run that calls it: canceled with it, in its trace, and refused where agents would call each other
/// in circles or too deep; that and a failure of the agent is told to the model. Headers that the
/// calling agent may see and the extensions that the caller has named reach it; the metadata of the
/// request does not, for it says what the caller wants of the agent that it has called.
pub struct AgentTool {
    agent: Arc<dyn Agent>,
    spec: ToolSpec,
}

/// How long an agent may take; its run may end sooner.
const TIMEOUT: Duration = Duration::from_secs(3_600);

/// Characters of a tool's name.
const MAX_NAME: usize = 64;

impl AgentTool {
    /// The agent under its own name; characters that no tool's name can have become `_`.
    pub fn new(agent: Arc<dyn Agent>) -> Self {
        let info = agent.info();
        let fits = |c: char| match c {
            c if c.is_ascii_alphanumeric() || c == '-' => c,
            _ => '_',
        };
        let name: String = info.id.as_str().chars().map(fits).take(MAX_NAME).collect();
        let schema = json!({
            "type": "object",
            "properties": {
                "message": {
                    "type": "string",
                    "minLength": 1,
                    "description": "What to ask or tell the agent, with everything it needs to know."
                }
            },
            "required": ["message"]
        });
        let spec = ToolSpec {
            parallel: true,
            resumable: info.resumable,
            timeout: TIMEOUT,
            ..ToolSpec::new(
                name,
                format!("Asks the agent {}. {}", info.name, info.description),
                schema,
            )
        };
        Self { agent, spec }
    }

    /// The same tool, called in another way.
    #[must_use]
    pub fn with_spec(mut self, change: impl FnOnce(&mut ToolSpec)) -> Self {
        change(&mut self.spec);
        self
    }
}

impl fmt::Debug for AgentTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AgentTool").field(&self.spec.name).finish()
    }
}

impl Tool for AgentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, cx: ToolCx, args: Value) -> ToolFuture<'_> {
        Box::pin(async move {
            let place = format!("call-{}", cx.call_id());
            let id = &self.agent.info().id;
            let child = cx.run().gathering_child(id, &place);
            let (child, gathered) = child.map_err(|error| ToolError::new(error.message()))?;
            let shelf = cx.run().child(id, &format!("{place}-given"));
            let shelf = shelf.map_err(|error| ToolError::new(error.message()))?;
            gathered.begin_with(given_before(&shelf));
            let message = match cx.answer() {
                Some(answer) => answer.clone(),
                None => {
                    let text = args["message"].as_str().unwrap_or_default();
                    Message::user(place, vec![Part::text(text)])
                }
            };
            let mut task = Task::default();
            task.id = child.task().clone();
            task.context_id = Some(child.context().clone());
            task.history = vec![message.clone()];
            let mut input = Input::new(message, Arc::new(task));
            input.checkpoint = child.left();
            input.forwarded.clone_from(cx.forwarded());
            input.extensions = cx.extensions().to_vec();
            let _canceled = child.cancellation().clone().drop_guard();
            let ended = self.agent.run(&child, input).await;
            let kept = match &ended {
                Ok(Outcome::Paused(_)) => shelf.checkpoint(&json!(gathered.artifacts())),
                _ => shelf.forget(),
            };
            kept.map_err(|error| ToolError::new(error.to_string()))?;
            match ended {
                Ok(outcome) => self.output(outcome, &gathered),
                Err(error) => Err(ToolError::new(error.message().to_owned())),
            }
        })
    }
}

/// What the agent gave before it asked.
fn given_before(shelf: &RunCx) -> Vec<Artifact> {
    let left = shelf
        .left()
        .and_then(|left| serde_json::from_value(left).ok());
    left.unwrap_or_default()
}

impl AgentTool {
    fn output(&self, outcome: Outcome, gathered: &Gathered) -> Result<ToolOutput, ToolError> {
        let name = &self.agent.info().id;
        let said = match outcome {
            Outcome::Done => Vec::new(),
            Outcome::Said(message) | Outcome::Reply(message) => message.parts,
            Outcome::Paused(pause) => return Ok(ToolOutput::paused(pause)),
            Outcome::Rejected(why) => {
                return Err(ToolError::new(format!("agent {name} refused: {why}")));
            }
            Outcome::HandOff { agent, .. } => {
                let why = format!(
                    "agent {name} wants to hand over to {agent}, which cannot be done here"
                );
                return Err(ToolError::new(why));
            }
        };
        let artifacts = gathered.artifacts().into_iter();
        let artifacts = artifacts.flat_map(|artifact| joined(artifact.parts));
        let parts: Vec<_> = said.into_iter().chain(artifacts).collect();
        Ok(match parts.is_empty() {
            true => ToolOutput::Value(Value::String(format!("agent {name} is done"))),
            false => ToolOutput::Parts(parts),
        })
    }
}
