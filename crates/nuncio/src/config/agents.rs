//! `[[agents]]`: agents without code.

use std::sync::Arc;

use nuncio_engine::{Agent, AgentInfo};
use nuncio_protocol::AgentSkill;
use nuncio_runtime::{EchoAgent, Fault, Rule, ScriptAgent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentConfig {
    /// Its name in addresses: letters, digits, `-`, `_`, `.`.
    pub(crate) id: String,
    /// What runs it.
    pub(crate) kind: AgentKind,
    /// Its name for people; the id if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// Its own version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// What it can do; one skill of its own name if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) skills: Vec<SkillConfig>,
    /// Media types it takes; text if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input_modes: Option<Vec<String>>,
    /// Media types it gives; text if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output_modes: Option<Vec<String>>,
    /// Whether clients may stream.
    #[serde(default = "yes")]
    pub(crate) streaming: bool,
    /// Whether it takes further messages while it works.
    #[serde(default = "yes")]
    pub(crate) queues_messages: bool,
    /// Whether a run that a crash cut off may start again.
    #[serde(default)]
    pub(crate) resumable: bool,
    /// What a script agent does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) rules: Vec<Rule>,
}

/// What runs an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AgentKind {
    /// Gives back the text it gets.
    Echo,
    /// Plays rules.
    Script,
}

/// One thing an agent can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SkillConfig {
    /// Unique within the agent.
    pub(crate) id: String,
    /// A name for people.
    pub(crate) name: String,
    /// What it does.
    pub(crate) description: String,
    /// Words to find it by.
    pub(crate) tags: Vec<String>,
    /// Sample requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) examples: Vec<String>,
    /// Media types it takes, if other than the agent's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) input_modes: Vec<String>,
    /// Media types it gives, if other than the agent's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) output_modes: Vec<String>,
}

fn yes() -> bool {
    true
}

impl AgentConfig {
    /// The agent of a server without configuration.
    pub(crate) fn echo() -> Self {
        Self {
            id: "echo".to_owned(),
            kind: AgentKind::Echo,
            name: None,
            description: None,
            version: None,
            skills: Vec::new(),
            input_modes: None,
            output_modes: None,
            streaming: true,
            queues_messages: true,
            resumable: false,
            rules: Vec::new(),
        }
    }

    /// The agent itself.
    ///
    /// # Errors
    /// The faults of its rules.
    pub(crate) fn build(&self) -> Result<Arc<dyn Agent>, Vec<Fault>> {
        match self.kind {
            AgentKind::Echo => {
                let plain = EchoAgent::new(self.id.as_str()).info().clone();
                Ok(Arc::new(EchoAgent::with_info(self.info(plain))))
            }
            AgentKind::Script => {
                let name = self.name.clone().unwrap_or_else(|| self.id.clone());
                let plain = AgentInfo::new(self.id.as_str(), name, "An agent that plays a script.");
                let agent = ScriptAgent::new(self.info(plain), self.rules.clone())?;
                Ok(Arc::new(agent))
            }
        }
    }

    /// What is said here over what is so anyway.
    fn info(&self, mut info: AgentInfo) -> AgentInfo {
        if let Some(name) = &self.name {
            info.name.clone_from(name);
        }
        if let Some(description) = &self.description {
            info.description.clone_from(description);
        }
        if let Some(version) = &self.version {
            info.version.clone_from(version);
        }
        if let Some(modes) = &self.input_modes {
            info.input_modes.clone_from(modes);
        }
        if let Some(modes) = &self.output_modes {
            info.output_modes.clone_from(modes);
        }
        if self.skills.is_empty() {
            for skill in &mut info.skills {
                skill.name.clone_from(&info.name);
                skill.description.clone_from(&info.description);
            }
        } else {
            info.skills = self.skills.iter().map(SkillConfig::skill).collect();
        }
        info.streaming = self.streaming;
        info.queues_messages = self.queues_messages;
        info.resumable = self.resumable;
        info
    }
}

impl SkillConfig {
    fn skill(&self) -> AgentSkill {
        let mut skill = AgentSkill::default();
        skill.id.clone_from(&self.id);
        skill.name.clone_from(&self.name);
        skill.description.clone_from(&self.description);
        skill.tags.clone_from(&self.tags);
        skill.examples.clone_from(&self.examples);
        skill.input_modes.clone_from(&self.input_modes);
        skill.output_modes.clone_from(&self.output_modes);
        skill
    }
}
