//! The tool that hands the task over to another agent.

use std::fmt::Write as _;
use std::sync::Arc;

use nuncio_engine::{Agent, Directory, RunCx};
use nuncio_protocol::{AgentId, Part};
use serde_json::{Value, json};

use super::{
    ReadyTool, Tool, ToolCx, ToolError, ToolFuture, ToolOutput, ToolSource, ToolSpec, ToolsFuture,
};

/// Agents of a server to which a model may hand its task over for good, with the tool `hand_over`.
///
/// The agent that gets the task goes on at once with what the model tells it, and gets what the caller
/// says later in this task; see [`Outcome::HandOff`](nuncio_engine::Outcome::HandOff). Agents are found
/// by their ids for each run: one that is gone is not offered, and without any there is no tool. They
/// may hand the task back; how often in one run is [limited](nuncio_engine::Settings::max_hand_offs).
/// An agent that works for another one, as a tool, has no task of its own to hand over.
#[derive(Clone, Debug)]
pub struct HandOver {
    directory: Directory,
    agents: Vec<AgentId>,
}

impl HandOver {
    /// The name of the tool.
    pub const NAME: &str = "hand_over";

    /// These agents.
    pub fn new(directory: Directory, agents: Vec<AgentId>) -> Self {
        Self { directory, agents }
    }

    fn list(&self, cx: &RunCx) -> Result<Vec<ReadyTool>, ToolError> {
        let others = self.agents.iter().filter(|id| *id != cx.agent());
        let mut found = Vec::new();
        for id in others {
            match self.directory.agent(id) {
                Some(agent) => found.push(agent),
                None => tracing::warn!(agent = %id, "an agent to hand over to is not there"),
            }
        }
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let spec = spec(&found);
        Ok(vec![ReadyTool::new(Arc::new(HandOverTool { spec }))?])
    }
}

impl ToolSource for HandOver {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn tools<'a>(&'a self, cx: &'a RunCx) -> ToolsFuture<'a> {
        let tools = self.list(cx);
        Box::pin(async move { tools })
    }
}

fn spec(agents: &[Arc<dyn Agent>]) -> ToolSpec {
    let ids: Vec<_> = agents
        .iter()
        .map(|agent| agent.info().id.as_str())
        .collect();
    let mut who = "Who gets the task.".to_owned();
    for info in agents.iter().map(|agent| agent.info()) {
        // Writing to a string does not fail.
        let _ = write!(who, " {}: {}. {}", info.id, info.name, info.description);
    }
    let schema = json!({
        "type": "object",
        "properties": {
            "agent": { "type": "string", "enum": ids, "description": who },
            "message": {
                "type": "string",
                "minLength": 1,
                "description": "What to tell the agent, with everything it needs to know."
            }
        },
        "required": ["agent", "message"]
    });
    let description = "Gives the whole task to another agent, which answers the user from now on. Use \
        it when another agent is the right one for what the user wants; you will not see what \
        becomes of it.";
    ToolSpec {
        // Nothing has happened before the run ends.
        read_only: true,
        parallel: true,
        ..ToolSpec::new(HandOver::NAME, description, schema)
    }
}

struct HandOverTool {
    spec: ToolSpec,
}

impl Tool for HandOverTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, cx: ToolCx, args: Value) -> ToolFuture<'_> {
        Box::pin(async move {
            let text = |name: &str| args[name].as_str().unwrap_or_default().to_owned();
            let message = cx.run().message(vec![Part::text(text("message"))]);
            Ok(ToolOutput::HandOff {
                agent: text("agent").as_str().into(),
                message: Box::new(message),
            })
        })
    }
}
