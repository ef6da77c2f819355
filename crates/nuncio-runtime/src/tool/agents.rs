//! Other agents of the server as tools.

use std::sync::Arc;

use nuncio_engine::{Directory, RunCx};
use nuncio_protocol::AgentId;

use super::{AgentTool, ReadyTool, ToolError, ToolSource, ToolsFuture};

/// Agents of a server that a model may ask, found by their ids for each run: one that was changed
/// meanwhile is asked as it is now, and one that was removed is done without.
#[derive(Clone, Debug)]
pub struct AgentTools {
    directory: Directory,
    agents: Vec<AgentId>,
}

impl AgentTools {
    /// These agents.
    pub fn new(directory: Directory, agents: Vec<AgentId>) -> Self {
        Self { directory, agents }
    }

    fn list(&self) -> Result<Vec<ReadyTool>, ToolError> {
        let mut tools = Vec::new();
        for id in &self.agents {
            match self.directory.agent(id) {
                Some(agent) => tools.push(ReadyTool::new(Arc::new(AgentTool::new(agent)))?),
                None => tracing::warn!(agent = %id, "an agent that a model may ask is not there"),
            }
        }
        Ok(tools)
    }
}

impl ToolSource for AgentTools {
    fn name(&self) -> &str {
        "agents"
    }

    fn tools<'a>(&'a self, _: &'a RunCx) -> ToolsFuture<'a> {
        let tools = self.list();
        Box::pin(async move { tools })
    }
}
