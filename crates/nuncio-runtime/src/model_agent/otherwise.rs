//! What a caller wants otherwise for one message, as far as the agent lets callers want it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use nuncio_engine::{AgentError, Input, RunCx};
use nuncio_protocol::{A2aError, AgentId, Metadata};

use super::{Budgets, ModelAgent};
use crate::FindAgent;
use crate::model::{Model, ModelParams};
use crate::overrides::{OverridePolicy, RequestOverrides};
use crate::tool::{AgentTool, ReadyTool};

/// What callers may change, and with what.
#[derive(Clone, Default)]
pub(super) struct Offered {
    pub(super) policy: OverridePolicy,
    pub(super) models: BTreeMap<String, Arc<dyn Model>>,
    pub(super) agents: Option<Arc<dyn FindAgent>>,
}

impl fmt::Debug for Offered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offered")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

/// What one message is answered with.
pub(super) struct Otherwise {
    pub(super) model: Arc<dyn Model>,
    pub(super) params: ModelParams,
    pub(super) budgets: Budgets,
    /// Instructions in place of the agent's; nothing is filled in.
    pub(super) prompt: Option<String>,
    said: RequestOverrides,
}

impl ModelAgent {
    /// Refuses what is no override, and what this caller may not change.
    pub(super) fn check_overrides(
        &self,
        caller: &str,
        metadata: Option<&Metadata>,
    ) -> Result<(), A2aError> {
        let said = RequestOverrides::read(metadata)?;
        let place = RequestOverrides::place(metadata);
        self.offered.policy.check(caller, &said, &place)
    }
}

impl Otherwise {
    /// What the request says. An agent that works in a flow, or that a task was handed over to, has not
    /// been asked before whether the caller may say it: what may not be said does not count for it.
    pub(super) fn of(agent: &ModelAgent, cx: &RunCx, input: &Input) -> Result<Self, AgentError> {
        let metadata = input.metadata.as_ref();
        let caller = cx.caller().id.as_str();
        let metadata = metadata.filter(|said| agent.check_overrides(caller, Some(said)).is_ok());
        let said =
            RequestOverrides::read(metadata).map_err(|error| AgentError::new(error.message))?;
        let model = match &said.model {
            None => Arc::clone(&agent.model),
            Some(name) => {
                let found = agent.offered.models.get(name).cloned();
                found.ok_or_else(|| AgentError::new(format!("there is no model {name} here")))?
            }
        };
        let mut budgets = agent.budgets;
        budgets.max_turns = said.max_turns.unwrap_or(budgets.max_turns);
        Ok(Self {
            model,
            params: merged(&agent.params, &said),
            budgets,
            prompt: said.system_prompt.clone(),
            said,
        })
    }

    /// The tools that are left, with other agents in the place of sub-agents.
    pub(super) fn tools(
        &self,
        agent: &ModelAgent,
        mut tools: Vec<ReadyTool>,
    ) -> Result<Vec<ReadyTool>, AgentError> {
        for (name, other) in &self.said.subagent_mapping {
            let known = tools.iter_mut().find(|tool| tool.spec().name == *name);
            let known = known.ok_or_else(|| missing("sub-agent", name))?;
            let found = agent.offered.agents.as_ref();
            let found = found.and_then(|agents| agents.find(&AgentId::from(other.as_str())));
            let found = found.ok_or_else(|| missing("agent", other))?;
            let tool = AgentTool::new(found).with_spec(|spec| spec.name.clone_from(name));
            *known = ReadyTool::new(Arc::new(tool)).map_err(AgentError::internal)?;
        }
        let Some(kept) = &self.said.capabilities else {
            return Ok(tools);
        };
        let is_tool = |name: &&String| tools.iter().any(|tool| tool.spec().name == **name);
        if let Some(unknown) = kept.keys().find(|name| !is_tool(name)) {
            return Err(missing("capability", unknown));
        }
        tools.retain(|tool| kept.contains_key(&tool.spec().name));
        Ok(tools)
    }
}

fn missing(what: &str, name: &str) -> AgentError {
    AgentError::new(format!("this agent has no {what} {name}"))
}

/// What is said over what is so anyway.
fn merged(own: &ModelParams, said: &RequestOverrides) -> ModelParams {
    let over = &said.model_params;
    ModelParams {
        temperature: over.temperature.or(own.temperature),
        max_tokens: over.max_tokens.or(own.max_tokens),
        top_p: over.top_p.or(own.top_p),
        stop: match over.stop.is_empty() {
            true => own.stop.clone(),
            false => over.stop.clone(),
        },
        seed: over.seed.or(own.seed),
        reasoning: said.reasoning.clone().or_else(|| own.reasoning.clone()),
    }
}
