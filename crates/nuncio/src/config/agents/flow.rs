//! Agents of the kinds `sequence`, `parallel`, `repeat`, `route` and `graph`: made of others.

use std::fmt;
use std::sync::Arc;

use nuncio_engine::Agent;
use nuncio_protocol::AgentId;
use nuncio_runtime::{
    Choice, Edge, Emit, FlowAgent, Graph, Join, Parallel, Plan, Rounds, Route, Sequence, When,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{AgentConfig, AgentKind, Workshop};

/// Whose artifacts a sequence gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EmitName {
    /// Those of the last member.
    Last,
    /// Those of all.
    All,
}

/// What happens after the last round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AtLimit {
    /// The task is FAILED.
    Fail,
    /// The task is COMPLETED with what the last round gave.
    Complete,
}

/// How many members must be done: `"all"`, `"any"`, or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinName {
    All,
    Any,
    Count(usize),
}

impl Serialize for JoinName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str("all"),
            Self::Any => serializer.serialize_str("any"),
            Self::Count(count) => serializer.serialize_u64(*count as u64),
        }
    }
}

impl<'de> Deserialize<'de> for JoinName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JoinVisitor)
    }
}

struct JoinVisitor;

impl Visitor<'_> for JoinVisitor {
    type Value = JoinName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"all\", \"any\" or a number of members")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<JoinName, E> {
        match text {
            "all" => Ok(JoinName::All),
            "any" => Ok(JoinName::Any),
            other => Err(E::unknown_variant(other, &["all", "any"])),
        }
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<JoinName, E> {
        usize::try_from(count)
            .map(JoinName::Count)
            .map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, count: i64) -> Result<JoinName, E> {
        usize::try_from(count)
            .map(JoinName::Count)
            .map_err(E::custom)
    }
}

impl JsonSchema for JoinName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "JoinName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "How many members must be done: \"all\", \"any\", or a number.",
            "anyOf": [{ "enum": ["all", "any"] }, { "type": "integer", "minimum": 1 }]
        })
    }
}

/// A way of a route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteConfig {
    /// What the message must be like; any will do if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) when: Option<When>,
    /// The agent that gets it.
    pub(crate) agent: String,
}

/// A way from one node of a graph to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EdgeConfig {
    /// The node where it begins.
    pub(crate) from: String,
    /// The node where it leads; `end` ends the flow.
    pub(crate) to: String,
    /// What `from` must have given; anything will do if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) when: Option<When>,
}

impl AgentConfig {
    pub(super) fn build_flow(&self, workshop: &Workshop) -> Arc<dyn Agent> {
        let members: Vec<String> = self.members().into_iter().map(|(_, id)| id).collect();
        let members = members.join(", ");
        let description = match self.kind {
            AgentKind::Sequence => format!("Asks one after another: {members}."),
            AgentKind::Parallel => format!("Asks at the same time: {members}."),
            AgentKind::Repeat => format!("Asks again and again: {members}."),
            AgentKind::Route => format!("Chooses one of: {members}."),
            _ => format!("A graph of: {members}."),
        };
        let mut plain = self.plain_info(&description);
        let info_of = |id: &str| Some(workshop.agents.agent(&id.into())?.info().clone());
        let (takers, givers) = self.ends();
        let takers: Vec<_> = takers.into_iter().filter_map(info_of).collect();
        if let Some((first, others)) = takers.split_first() {
            let taken = |mode: &&String| others.iter().all(|info| info.input_modes.contains(mode));
            let modes: Vec<_> = first.input_modes.iter().filter(taken).cloned().collect();
            if !modes.is_empty() {
                plain.input_modes = modes;
            }
        }
        let given = givers.into_iter().filter_map(info_of);
        let mut modes: Vec<String> = Vec::new();
        for mode in given.flat_map(|info| info.output_modes) {
            if !modes.contains(&mode) {
                modes.push(mode);
            }
        }
        if !modes.is_empty() {
            plain.output_modes = modes;
        }
        let info = self.info(plain);
        let agents = Arc::new(workshop.agents.clone());
        Arc::new(FlowAgent::new(info, self.plan(), agents))
    }

    fn plan(&self) -> Plan {
        let members: Vec<AgentId> = self.members.iter().map(|id| id.as_str().into()).collect();
        match self.kind {
            AgentKind::Parallel => Plan::Parallel(Parallel {
                join: match self.join {
                    None | Some(JoinName::All) => Join::All,
                    Some(JoinName::Any) => Join::Count(1),
                    Some(JoinName::Count(count)) => Join::Count(count),
                },
                concurrency: self.concurrency.unwrap_or(Parallel::CONCURRENCY),
                members,
            }),
            AgentKind::Repeat => Plan::Repeat(Rounds {
                members,
                until: self.until.clone(),
                limit: self.limit.unwrap_or(Rounds::LIMIT),
                complete_at_limit: self.at_limit == Some(AtLimit::Complete),
            }),
            AgentKind::Route => Plan::Route(match &self.router {
                Some(router) => Route::Router {
                    router: router.as_str().into(),
                    members,
                },
                None => Route::Rules(self.routes.iter().map(RouteConfig::choice).collect()),
            }),
            AgentKind::Graph => Plan::Graph(Graph {
                nodes: self
                    .nodes
                    .iter()
                    .map(|(name, id)| (name.clone(), id.as_str().into()))
                    .collect(),
                edges: self.edges.iter().map(EdgeConfig::edge).collect(),
                start: self.start.clone().unwrap_or_default(),
                limit: self.limit.unwrap_or(Graph::LIMIT),
            }),
            _ => Plan::Sequence(Sequence {
                members,
                emit: match self.emit {
                    None | Some(EmitName::Last) => Emit::Last,
                    Some(EmitName::All) => Emit::All,
                },
            }),
        }
    }

    /// The members that may get the message as it came, and those whose artifacts may be the task's.
    fn ends(&self) -> (Vec<&str>, Vec<&str>) {
        let members = || self.members.iter().map(String::as_str);
        let first = members().take(1).collect();
        let last = members().next_back().into_iter().collect();
        match self.kind {
            AgentKind::Parallel => (members().collect(), members().collect()),
            AgentKind::Route => {
                let chosen = self.routes.iter().map(|route| route.agent.as_str());
                let chosen: Vec<_> = members().chain(chosen).collect();
                let router = self.router.as_deref();
                (router.into_iter().chain(chosen.clone()).collect(), chosen)
            }
            AgentKind::Graph => {
                let start = self.start.as_ref().and_then(|start| self.nodes.get(start));
                let start = start.map(String::as_str);
                let ends = self.nodes.iter().filter(|(name, _)| self.may_end_at(name));
                let ends = ends.map(|(_, agent)| agent.as_str());
                (start.into_iter().collect(), ends.collect())
            }
            AgentKind::Sequence if self.emit == Some(EmitName::All) => (first, members().collect()),
            _ => (first, last),
        }
    }

    fn may_end_at(&self, node: &str) -> bool {
        let mut ways = self
            .edges
            .iter()
            .filter(|edge| edge.from == node)
            .peekable();
        ways.peek().is_none() || ways.any(|edge| edge.to == Graph::END)
    }

    /// The agents that this one is made of, each with where it is said.
    pub(crate) fn members(&self) -> Vec<(String, String)> {
        let listed = self.members.iter().enumerate();
        let listed = listed.map(|(at, id)| (format!("members[{at}]"), id));
        let router = self.router.iter().map(|id| ("router".to_owned(), id));
        let routes = self.routes.iter().enumerate();
        let routes = routes.map(|(at, route)| (format!("routes[{at}].agent"), &route.agent));
        let nodes = self.nodes.iter();
        let nodes = nodes.map(|(name, id)| (format!("nodes.{name}"), id));
        let all = listed.chain(router).chain(routes).chain(nodes);
        all.map(|(path, id)| (path, id.clone())).collect()
    }

    /// Why it needs the agent of this name, if it does.
    pub(crate) fn needs(&self, id: &str) -> Option<&'static str> {
        if self.members().iter().any(|(_, member)| member == id) {
            return Some("is a member of");
        }
        let hands_over = self.hand_over.iter().any(|other| other == id);
        hands_over.then_some("may get tasks of")
    }
}

impl RouteConfig {
    fn choice(&self) -> Choice {
        Choice {
            when: self.when.clone(),
            agent: self.agent.as_str().into(),
        }
    }
}

impl EdgeConfig {
    fn edge(&self) -> Edge {
        Edge {
            from: self.from.clone(),
            to: self.to.clone(),
            when: self.when.clone(),
        }
    }
}
