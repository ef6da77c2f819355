//! `[[agents]]`: agents without code, one module for each kind that has much to say.

mod a2a;
mod flow;
mod flow_check;
mod given;
mod http;
mod kind;
mod model;
mod openai;
mod process;
mod secrets;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use nuncio_egress::Egress;
use nuncio_engine::{Agent, AgentInfo, Directory};
use nuncio_protocol::{
    AgentCard, AgentExtension, AgentProvider, AgentSkill, SecurityRequirement, StringList, Version,
};
use nuncio_runtime::model::ModelParams;
use nuncio_runtime::overrides::OverridePolicy;
use nuncio_runtime::{Budgets, EchoAgent, Rule, ScriptAgent, When};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::a2a::{BindingName, WaitingName};
pub(crate) use self::flow::{AtLimit, EdgeConfig, EmitName, JoinName, RouteConfig};
pub(crate) use self::flow_check::check_members;
pub(crate) use self::given::{Given, secret_headers};
pub(crate) use self::kind::AgentKind;
pub(crate) use self::process::{INHERITED, ProcessModeName};
use super::LayersByName;
use super::check::Found;
use super::mcp::McpServers;
use super::models::Models;
use super::openapi::OpenApis;

/// What agents are made with, besides what the configuration says of them.
#[derive(Clone)]
pub(crate) struct Workshop {
    /// The server's environment.
    pub(crate) environment: BTreeMap<String, String>,
    /// The way to services elsewhere.
    pub(crate) egress: Egress,
    /// The models that agents may speak with.
    pub(crate) models: Models,
    /// The MCP servers whose tools they may call.
    pub(crate) mcp: McpServers,
    /// The services whose operations models may call.
    pub(crate) openapi: OpenApis,
    /// What agents have around them.
    pub(crate) layers: LayersByName,
    /// Where flows find their members, and models the agents they ask.
    pub(crate) agents: Directory,
}

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
    /// Who runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provider: Option<ProviderConfig>,
    /// Where to read more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) documentation_url: Option<String>,
    /// A picture of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) icon_url: Option<String>,
    /// The workspaces in which it is found; all if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) workspaces: Vec<String>,
    /// The protocol versions it is served in.
    #[serde(default = "all_dialects")]
    pub(crate) dialects: Vec<DialectName>,
    /// The bindings over which it is called, in the order in which its card names them.
    #[serde(default = "all_bindings")]
    pub(crate) bindings: Vec<BindingName>,
    /// Whether the routes of OxyGent's gateway are served too.
    #[serde(default)]
    pub(crate) legacy_routes: bool,
    /// Extensions it understands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) extensions: Vec<ExtensionConfig>,
    /// What only authenticated callers see of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) extended: Option<ExtendedConfig>,
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
    /// Whether clients may register webhooks.
    #[serde(default = "yes")]
    pub(crate) push_notifications: bool,
    /// Whether it takes further messages while it works.
    #[serde(default = "yes")]
    pub(crate) queues_messages: bool,
    /// Whether a run that a crash cut off may start again.
    #[serde(default)]
    pub(crate) resumable: bool,
    /// Layers around it, outermost first: names of `[layers]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) layers: Vec<String>,
    /// What a script agent does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) rules: Vec<Rule>,
    /// The program of a process agent, and its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) command: Vec<String>,
    /// The program's working directory; that of the server if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) folder: Option<PathBuf>,
    /// Variables that the program gets beside PATH, HOME and LANG.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<String, Given>,
    /// Whether the program serves one message or many; one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<ProcessModeName>,
    /// Programs at once; 16 if absent. Further messages wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_processes: Option<usize>,
    /// How long a line of the program's output may be, in bytes; 8 MiB if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_line_bytes: Option<usize>,
    /// Seconds between SIGTERM and SIGKILL for a program that does not end; 5 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) grace_seconds: Option<u64>,
    /// Where a service is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// Headers that go with every request to it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, Given>,
    /// The token with which the service knows us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bearer: Option<Given>,
    /// Headers of callers that are passed on to it; none if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) forward_headers: Vec<String>,
    /// Seconds until an answer must begin; 300 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_seconds: Option<u64>,
    /// Seconds for which an answer may pause; 300 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) idle_seconds: Option<u64>,
    /// How often a request is sent again while there is no answer; 2 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retries: Option<u32>,
    /// The card of a remote agent, in a file; else it is found at its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) card: Option<PathBuf>,
    /// The binding in which a remote agent is called; the first of its card that is spoken here if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) binding: Option<BindingName>,
    /// The protocol version in which a remote agent is called; the newest of its card if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<DialectName>,
    /// How the tasks of a remote agent are waited for; by a stream if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) waiting: Option<WaitingName>,
    /// Whether operations of callers are passed on to a remote agent as they are: its tasks are kept
    /// there and not here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) pass_through: bool,
    /// The model that speaks for a model agent: a name of `[models]`. For an endpoint of its own, the
    /// name there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// Who the agent is and what it must do. `{agent.name}`, `{caller}`, `{date}` and others are
    /// filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instructions: Option<String>,
    /// Whether the model may ask the user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ask_user: bool,
    /// How the model is to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) params: Option<ModelParams>,
    /// How much a run of it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) budgets: Option<Budgets>,
    /// The JSON Schema of its answers, which are then data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output_schema: Option<serde_json::Value>,
    /// Whether callers may run their tasks again from a call of a model or tool that they change: they
    /// decide then what tools are called with and what has come out of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) reruns: bool,
    /// Whether callers see what went into the steps of their tasks and came out of them, such as
    /// instructions and results of tools.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) trace_content: bool,
    /// What callers of a model agent may change for one request; nothing if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) overrides: Option<OverridePolicy>,
    /// The MCP servers whose tools a model may call: names of `[mcp]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) mcp: Vec<String>,
    /// The services whose operations a model may call: names of `[openapi]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) openapi: Vec<String>,
    /// The agents of a flow by their ids, in order; those that a model may ask as it calls tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) members: Vec<String>,
    /// The agents to which a model may hand its task over for good, by their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) hand_over: Vec<String>,
    /// Whose artifacts a sequence gives; those of the last member if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) emit: Option<EmitName>,
    /// How many members of a parallel flow must be done; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) join: Option<JoinName>,
    /// How many members of a parallel flow work at once; 8 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) concurrency: Option<usize>,
    /// What the last member's words must be like to end a repetition; `{"done": true}` as data
    /// always ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<When>,
    /// Rounds of a repetition, or visits of a node of a graph; 10 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<usize>,
    /// What happens after the last round; the task fails if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at_limit: Option<AtLimit>,
    /// Whom a route chooses; the first whose rule fits the message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) routes: Vec<RouteConfig>,
    /// The agent that names one of the members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) router: Option<String>,
    /// The nodes of a graph, each with its agent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) nodes: BTreeMap<String, String>,
    /// The edges of a graph; the first that fits is taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) edges: Vec<EdgeConfig>,
    /// Where a graph begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<String>,
}

/// Who runs an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProviderConfig {
    /// Their name.
    pub(crate) organization: String,
    /// Their site.
    pub(crate) url: String,
}

/// A protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum DialectName {
    /// 0.3, with which most older clients call.
    #[serde(rename = "0.3")]
    V0_3,
    /// 1.0.
    #[serde(rename = "1.0")]
    V1_0,
}

/// An extension that an agent understands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExtensionConfig {
    /// Its name.
    pub(crate) uri: String,
    /// What the agent does with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// Whether calls without it are refused.
    #[serde(default)]
    pub(crate) required: bool,
    /// Settings of its own, shown in the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) params: Option<serde_json::Map<String, serde_json::Value>>,
}

/// What the card for authenticated callers has in addition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ExtendedConfig {
    /// What the agent is for, instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// Further skills.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) skills: Vec<SkillConfig>,
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
    /// What it needs beyond the card's requirements: scheme names with scopes, any one entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) security: Vec<BTreeMap<String, Vec<String>>>,
}

fn all_dialects() -> Vec<DialectName> {
    vec![DialectName::V0_3, DialectName::V1_0]
}

fn all_bindings() -> Vec<BindingName> {
    vec![
        BindingName::JsonRpc,
        BindingName::HttpJson,
        BindingName::Grpc,
    ]
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
            provider: None,
            documentation_url: None,
            icon_url: None,
            workspaces: Vec::new(),
            dialects: all_dialects(),
            bindings: all_bindings(),
            legacy_routes: false,
            extensions: Vec::new(),
            extended: None,
            skills: Vec::new(),
            input_modes: None,
            output_modes: None,
            streaming: true,
            push_notifications: true,
            queues_messages: true,
            resumable: false,
            layers: Vec::new(),
            rules: Vec::new(),
            command: Vec::new(),
            folder: None,
            env: BTreeMap::new(),
            mode: None,
            max_processes: None,
            max_line_bytes: None,
            grace_seconds: None,
            url: None,
            headers: BTreeMap::new(),
            bearer: None,
            forward_headers: Vec::new(),
            timeout_seconds: None,
            idle_seconds: None,
            retries: None,
            card: None,
            binding: None,
            protocol: None,
            waiting: None,
            pass_through: false,
            model: None,
            instructions: None,
            ask_user: false,
            params: None,
            budgets: None,
            output_schema: None,
            reruns: false,
            trace_content: false,
            overrides: None,
            mcp: Vec::new(),
            openapi: Vec::new(),
            members: Vec::new(),
            hand_over: Vec::new(),
            emit: None,
            join: None,
            concurrency: None,
            until: None,
            limit: None,
            at_limit: None,
            routes: Vec::new(),
            router: None,
            nodes: BTreeMap::new(),
            edges: Vec::new(),
            start: None,
        }
    }

    /// How an agent that is Rust code is served: in all versions and workspaces.
    pub(crate) fn of_code(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            ..Self::echo()
        }
    }

    /// The agent itself.
    ///
    /// # Errors
    /// What is wrong with its settings, or missing in the server's surroundings.
    pub(crate) fn build(&self, workshop: &Workshop) -> Result<Arc<dyn Agent>, String> {
        self.within_layers(self.bare(workshop)?, &workshop.layers)
    }

    /// The agent without the layers around it.
    fn bare(&self, workshop: &Workshop) -> Result<Arc<dyn Agent>, String> {
        match self.kind {
            AgentKind::Echo => {
                let plain = EchoAgent::new(self.id.as_str()).info().clone();
                Ok(Arc::new(EchoAgent::with_info(self.info(plain))))
            }
            AgentKind::Script => {
                let plain = self.plain_info("An agent that plays a script.");
                let agent = ScriptAgent::new(self.info(plain), self.rules.clone());
                let agent = agent.map_err(|faults| {
                    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
                    faults.join("; ")
                })?;
                Ok(Arc::new(agent))
            }
            AgentKind::Process => self.build_process(workshop),
            AgentKind::Http => self.build_http(workshop),
            AgentKind::A2a => self.build_a2a(workshop),
            AgentKind::Model => self.build_model(workshop),
            AgentKind::Openai => self.build_openai(workshop),
            AgentKind::Sequence
            | AgentKind::Parallel
            | AgentKind::Repeat
            | AgentKind::Route
            | AgentKind::Graph => Ok(self.build_flow(workshop)),
        }
    }

    /// Finds what is wrong with the settings of its kind.
    pub(super) fn check_kind(&self, path: &str, found: &mut Found) {
        self.check_placement(path, found);
        self.check_secrets(path, found);
        match self.kind {
            AgentKind::Echo => {}
            AgentKind::Script => {
                for fault in nuncio_runtime::check(&self.rules) {
                    let path = format!("{path}.rules{}", fault.path);
                    found.add(path, fault.message, fault.hint);
                }
            }
            AgentKind::Process => self.check_process(path, found),
            AgentKind::Http => self.check_http(path, found),
            AgentKind::A2a => self.check_a2a(path, found),
            AgentKind::Model => self.check_model(path, found),
            AgentKind::Openai => self.check_openai(path, found),
            AgentKind::Sequence
            | AgentKind::Parallel
            | AgentKind::Repeat
            | AgentKind::Route
            | AgentKind::Graph => self.check_flow(path, found),
        }
    }

    /// What is so unless the configuration says otherwise.
    fn plain_info(&self, description: &str) -> AgentInfo {
        let name = self.name.clone().unwrap_or_else(|| self.id.clone());
        AgentInfo::new(self.id.as_str(), name, description)
    }

    /// The card for authenticated callers, made of the public one; `None` if there is no other.
    pub(crate) fn extended_card(&self, public: &AgentCard) -> Option<AgentCard> {
        let extended = self.extended.as_ref()?;
        let mut card = public.clone();
        if let Some(description) = &extended.description {
            card.description.clone_from(description);
        }
        card.skills
            .extend(extended.skills.iter().map(SkillConfig::skill));
        Some(card)
    }

    /// The protocol versions it is served in.
    pub(crate) fn versions(&self) -> impl Iterator<Item = Version> {
        self.dialects.iter().map(|dialect| match dialect {
            DialectName::V0_3 => Version::V0_3,
            DialectName::V1_0 => Version::V1_0,
        })
    }

    /// What is said here over what is so anyway.
    fn info(&self, mut info: AgentInfo) -> AgentInfo {
        info.reruns |= self.reruns;
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
            // A skill that only stands for the agent itself.
            let own = |skill: &&mut AgentSkill| skill.id == self.id;
            for skill in info.skills.iter_mut().filter(own) {
                skill.name.clone_from(&info.name);
                skill.description.clone_from(&info.description);
            }
        } else {
            info.skills = self.skills.iter().map(SkillConfig::skill).collect();
        }
        if let Some(provider) = &self.provider {
            let mut said = AgentProvider::default();
            said.organization.clone_from(&provider.organization);
            said.url.clone_from(&provider.url);
            info.provider = Some(said);
        }
        if self.documentation_url.is_some() {
            info.documentation_url.clone_from(&self.documentation_url);
        }
        if self.icon_url.is_some() {
            info.icon_url.clone_from(&self.icon_url);
        }
        info.extensions = self.extensions.iter().map(|e| e.extension()).collect();
        info.streaming = self.streaming;
        info.push_notifications = self.push_notifications;
        info.queues_messages = self.queues_messages;
        info.resumable = self.resumable;
        info
    }
}

impl ExtensionConfig {
    fn extension(&self) -> AgentExtension {
        let mut extension = AgentExtension::default();
        extension.uri.clone_from(&self.uri);
        extension.description.clone_from(&self.description);
        extension.required = self.required;
        extension.params.clone_from(&self.params);
        extension
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
        skill.security_requirements = self.security.iter().map(requirement).collect();
        skill
    }
}

fn requirement(schemes: &BTreeMap<String, Vec<String>>) -> SecurityRequirement {
    let mut requirement = SecurityRequirement::default();
    for (name, scopes) in schemes {
        let mut list = StringList::default();
        list.list.clone_from(scopes);
        requirement.schemes.insert(name.clone(), list);
    }
    requirement
}
