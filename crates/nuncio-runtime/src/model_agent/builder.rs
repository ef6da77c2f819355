//! Making a model agent.

use std::fmt;
use std::sync::Arc;

#[cfg(doc)]
use nuncio_engine::RunCx;
use nuncio_engine::{AgentInfo, Directory, SystemClock};
use nuncio_protocol::{AgentExtension, AgentId, AgentSkill, Clock};
use serde_json::Value;

use super::instructions::Instructions;
use super::otherwise::Offered;
use super::structured::OutputSchema;
use super::{Budgets, ModelAgent, Prices};
use crate::FindAgent;
use crate::layer::Layer;
use crate::model::{Model, ModelParams};
use crate::overrides::{OVERRIDES, OverridePolicy};
use crate::tool::{AskUser, HandOver, ReadyTool, Tool, ToolSource};

/// Why an agent could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// No model was named.
    #[error("the agent has no model")]
    NoModel,
    /// A tool cannot be used.
    #[error("{0}")]
    Tool(String),
    /// Two tools have one name.
    #[error("two tools have the name {0}")]
    SameName(String),
    /// The schema of the output is none.
    #[error("the output schema is no JSON Schema: {0}")]
    OutputSchema(String),
}

/// Makes a [`ModelAgent`].
pub struct ModelAgentBuilder {
    info: AgentInfo,
    model: Option<Arc<dyn Model>>,
    instructions: String,
    tools: Vec<(Arc<dyn Tool>, bool)>,
    sources: Vec<Arc<dyn ToolSource>>,
    params: ModelParams,
    output: Option<Value>,
    budgets: Budgets,
    prices: Option<Prices>,
    clock: Arc<dyn Clock>,
    offered: Offered,
    layers: Vec<Arc<dyn Layer>>,
}

impl fmt::Debug for ModelAgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelAgentBuilder")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

/// Media types that most models take.
const INPUT_MODES: [&str; 7] = [
    "text/plain",
    "application/json",
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "application/pdf",
];

impl ModelAgent {
    /// An agent under this name; it needs a model.
    pub fn builder(id: impl Into<AgentId>) -> ModelAgentBuilder {
        let id = id.into();
        let name = id.as_str().to_owned();
        let mut info = AgentInfo::new(id, name, "An agent that a language model speaks for.");
        info.input_modes = INPUT_MODES.map(str::to_owned).to_vec();
        // A repeated run goes on where its checkpoint says.
        info.resumable = true;
        ModelAgentBuilder {
            info,
            model: None,
            instructions: String::new(),
            tools: Vec::new(),
            sources: Vec::new(),
            params: ModelParams::default(),
            output: None,
            budgets: Budgets::default(),
            prices: None,
            clock: Arc::new(SystemClock),
            offered: Offered::default(),
            layers: Vec::new(),
        }
    }
}

impl ModelAgent {
    /// Whether a value is a JSON Schema that answers can be held to.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_schema(schema: &Value) -> Result<(), String> {
        OutputSchema::new(schema.clone()).map(drop)
    }
}

impl ModelAgentBuilder {
    /// What the agent says about itself, instead of what was made of its id. Skills of
    /// [`skill`](Self::skill) are added.
    #[must_use]
    pub fn info(mut self, info: AgentInfo) -> Self {
        self.info = info;
        self
    }

    /// What the agent says about itself so far.
    pub fn info_so_far(&self) -> &AgentInfo {
        &self.info
    }

    /// The model; a [`ModelChain`](crate::model::ModelChain) repeats and falls back.
    #[must_use]
    pub fn model(mut self, model: impl Model + 'static) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// Who the agent is and what it must do. `{agent}`, `{agent.name}`, `{caller}`, `{workspace}`,
    /// `{context}`, `{task}`, `{date}` and `{time}` (UTC) are filled in, and other names from the state of
    /// the [session](RunCx::session), such as `{language}` or `{caller:language}`. `{name?}` may be
    /// unknown, `{{` is a brace. A run fails if a variable has no value.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.instructions = text.into();
        self
    }

    /// Something that the model may call.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push((Arc::new(tool), false));
        self
    }

    /// Something that the model may call, and callers too: it is a skill of the card, and a data part
    /// `{"skill": "name", "input": {…}}` calls it without the model.
    #[must_use]
    pub fn skill(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push((Arc::new(tool), true));
        self
    }

    /// Lets the model ask the user.
    #[must_use]
    pub fn ask_user(self) -> Self {
        self.tool(AskUser::default())
    }

    /// Something that lists tools for each run.
    #[must_use]
    pub fn source(mut self, source: Arc<dyn ToolSource>) -> Self {
        self.sources.push(source);
        self
    }

    /// Lets the model [hand its task over](HandOver) to these agents.
    #[must_use]
    pub fn hand_over(self, directory: Directory, agents: Vec<AgentId>) -> Self {
        self.source(Arc::new(HandOver::new(directory, agents)))
    }

    /// How the model is to answer.
    #[must_use]
    pub fn params(mut self, params: ModelParams) -> Self {
        self.params = params;
        self
    }

    /// The JSON Schema of the answer, which is then data instead of words.
    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output = Some(schema);
        self
    }

    /// How much a run may use.
    #[must_use]
    pub fn budgets(mut self, budgets: Budgets) -> Self {
        self.budgets = budgets;
        self
    }

    /// What the model costs; the metadata of answers then says the cost.
    #[must_use]
    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = Some(prices);
        self
    }

    /// One more layer, within those before it.
    #[must_use]
    pub fn layer(mut self, layer: impl Layer + 'static) -> Self {
        self.layers.push(Arc::new(layer));
        self
    }

    /// Further layers, outermost first, within those before them.
    #[must_use]
    pub fn layers(mut self, layers: impl IntoIterator<Item = Arc<dyn Layer>>) -> Self {
        self.layers.extend(layers);
        self
    }

    /// What callers may change for one request, in its metadata; nothing otherwise.
    #[must_use]
    pub fn overrides(mut self, policy: OverridePolicy) -> Self {
        self.offered.policy = policy;
        self
    }

    /// A model that callers may choose by this name, if [`overrides`](Self::overrides) says so.
    #[must_use]
    pub fn other_model(mut self, name: impl Into<String>, model: impl Model + 'static) -> Self {
        self.offered.models.insert(name.into(), Arc::new(model));
        self
    }

    /// Where agents are found that callers may put in the place of sub-agents, if
    /// [`overrides`](Self::overrides) says so.
    #[must_use]
    pub fn other_agents(mut self, agents: impl FindAgent + 'static) -> Self {
        self.offered.agents = Some(Arc::new(agents));
        self
    }

    /// The clock of `{date}` and `{time}`, instead of the machine's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The agent.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn build(self) -> Result<ModelAgent, BuildError> {
        let mut info = self.info;
        let (mut tools, mut skills) = (Vec::<ReadyTool>::new(), Vec::new());
        for (tool, is_skill) in self.tools {
            let tool = ReadyTool::new(tool).map_err(|e| BuildError::Tool(e.to_string()))?;
            let spec = tool.spec();
            if tools.iter().any(|known| known.spec().name == spec.name) {
                return Err(BuildError::SameName(spec.name.clone()));
            }
            if is_skill {
                skills.push(spec.name.clone());
                info.skills.push(skill_of(&spec.name, &spec.description));
            }
            tools.push(tool);
        }
        let mut extension = AgentExtension::default();
        extension.uri = OVERRIDES.to_owned();
        extension.description = Some("What a caller wants otherwise for one request.".to_owned());
        info.extensions.push(extension);
        let output = self.output.map(OutputSchema::new).transpose();
        let output = output.map_err(BuildError::OutputSchema)?;
        let json = "application/json".to_owned();
        if (output.is_some() || !skills.is_empty()) && !info.output_modes.contains(&json) {
            info.output_modes.push(json);
        }
        Ok(ModelAgent {
            info,
            model: self.model.ok_or(BuildError::NoModel)?,
            instructions: Instructions::parse(&self.instructions),
            tools,
            skills,
            sources: self.sources,
            params: self.params,
            output,
            budgets: self.budgets,
            prices: self.prices,
            clock: self.clock,
            offered: self.offered,
            layers: self.layers.into(),
        })
    }
}

fn skill_of(name: &str, description: &str) -> AgentSkill {
    let mut skill = AgentSkill::default();
    skill.id = name.to_owned();
    skill.name = name.to_owned();
    skill.description = description.to_owned();
    skill.tags = vec![name.to_owned()];
    skill
}
