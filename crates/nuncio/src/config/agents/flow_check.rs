//! What can be wrong with a flow, by itself and among other agents.

use std::collections::BTreeSet;

use nuncio_runtime::{Fault, Graph, When};

use super::{AgentConfig, AgentKind};
use crate::config::check::Found;
use crate::config::is_name;

use super::flow::JoinName;

const MEMBERS_HINT: &str = "for example `members = [\"writer\", \"critic\"]`";

impl AgentConfig {
    pub(super) fn check_flow(&self, path: &str, found: &mut Found) {
        match self.kind {
            AgentKind::Route => self.check_route(path, found),
            AgentKind::Graph => self.check_graph(path, found),
            _ if self.members.is_empty() => {
                found.add(
                    format!("{path}.members"),
                    "there is nobody to ask",
                    MEMBERS_HINT,
                );
            }
            _ => {}
        }
        if let Some(JoinName::Count(count)) = self.join {
            let most = self.members.len().max(1) as u64;
            found.range(&format!("{path}.join"), count as u64, 1..=most);
        }
        let ranges = [
            ("concurrency", self.concurrency, 1..=1_000),
            ("limit", self.limit, 1..=1_000),
        ];
        for (key, value, allowed) in ranges {
            if let Some(value) = value {
                found.range(&format!("{path}.{key}"), value as u64, allowed);
            }
        }
        check_when(&format!("{path}.until"), self.until.as_ref(), found);
        self.check_headers(path, found);
    }

    fn check_route(&self, path: &str, found: &mut Found) {
        match (&self.router, self.routes.is_empty()) {
            (Some(_), false) => found.add(
                format!("{path}.routes"),
                "either rules choose, or a router does",
                "keep one of `routes` and `router`",
            ),
            (None, true) => found.add(
                format!("{path}.routes"),
                "nothing chooses",
                "for example `routes = [{ when = { text_prefix = \"bill\" }, agent = \"billing\" }]`, or `router` with `members`",
            ),
            (Some(_), true) if self.members.is_empty() => found.add(
                format!("{path}.members"),
                "there is nobody to choose",
                MEMBERS_HINT,
            ),
            (None, false) if !self.members.is_empty() => found.add(
                format!("{path}.members"),
                "`routes` name the agents already",
                "remove it, or use `router`",
            ),
            _ => {}
        }
        let whens = self.routes.iter().map(|route| route.when.as_ref());
        for (at, when) in whens.clone().enumerate() {
            check_when(&format!("{path}.routes[{at}].when"), when, found);
        }
        if let Some(always) = whens.clone().position(|when| when.is_none())
            && always + 1 < self.routes.len()
        {
            found.add(
                format!("{path}.routes[{always}]"),
                "routes after one without `when` are never taken",
                "move this one to the end",
            );
        }
    }

    fn check_graph(&self, path: &str, found: &mut Found) {
        if self.nodes.is_empty() {
            let hint = "for example `nodes = { draft = \"writer\", review = \"critic\" }`";
            found.add(format!("{path}.nodes"), "a graph needs nodes", hint);
            return;
        }
        for name in self.nodes.keys() {
            if !is_name(name) || name == Graph::END {
                let message = format!("\"{name}\" cannot be the name of a node");
                let hint = "a name of letters and digits, and not `end`";
                found.add(format!("{path}.nodes"), message, hint);
            }
        }
        let known: Vec<&str> = self.nodes.keys().map(String::as_str).collect();
        let start = self.start.as_deref();
        if !start.is_some_and(|start| self.nodes.contains_key(start)) {
            found.add(
                format!("{path}.start"),
                "this is where the flow begins, and must be a node",
                format!("one of: {}", known.join(", ")),
            );
        }
        for (at, edge) in self.edges.iter().enumerate() {
            for (key, node) in [("from", &edge.from), ("to", &edge.to)] {
                let ends = key == "to" && node == Graph::END;
                if !ends && !self.nodes.contains_key(node) {
                    let message = format!("there is no node \"{node}\"");
                    let hint = format!("one of: {}", known.join(", "));
                    found.add(format!("{path}.edges[{at}].{key}"), message, hint);
                }
            }
            check_when(
                &format!("{path}.edges[{at}].when"),
                edge.when.as_ref(),
                found,
            );
            let before = &self.edges[..at];
            if before
                .iter()
                .any(|b| b.from == edge.from && b.when.is_none())
            {
                found.add(
                    format!("{path}.edges[{at}]"),
                    "this edge is never taken: one before it has no `when`",
                    "put the edge without `when` after those with one",
                );
            }
        }
    }
}

fn check_when(path: &str, when: Option<&When>, found: &mut Found) {
    if when.is_some_and(|when| *when == When::default()) {
        let hint = "add one such as `text_contains = \"yes\"`, or leave it out";
        found.add(path, "there is no condition", hint);
    }
}

/// What is wrong with the other agents that an agent names: those that are not there, agents that are
/// made of themselves, and one that hands over to itself. `find` finds the others; paths begin in the agent.
pub(crate) fn check_members<'a>(
    agent: &'a AgentConfig,
    find: impl Fn(&str) -> Option<&'a AgentConfig>,
) -> Vec<Fault> {
    let find = |id: &str| {
        if id == agent.id {
            Some(agent)
        } else {
            find(id)
        }
    };
    let mut faults = Vec::new();
    let unknown = |path, id: &str| Fault {
        path,
        message: format!("there is no agent \"{id}\""),
        hint: "name an agent of this server by its id".to_owned(),
    };
    for (at, id) in agent.hand_over.iter().enumerate() {
        let path = format!("hand_over[{at}]");
        if *id == agent.id {
            faults.push(Fault {
                path,
                message: format!("agent {id} has the task already"),
                hint: "name another agent".to_owned(),
            });
        } else if find(id).is_none() {
            faults.push(unknown(path, id));
        }
    }
    for (path, id) in agent.members() {
        let Some(member) = find(&id) else {
            faults.push(unknown(path, &id));
            continue;
        };
        if reaches(member, &agent.id, &find, &mut BTreeSet::new()) {
            faults.push(Fault {
                path,
                message: format!("agent {} would be made of itself, by way of {id}", agent.id),
                hint: "take one of them out".to_owned(),
            });
        }
    }
    faults
}

/// Whether an agent is the one of this name, or is made of it in the end.
fn reaches<'a>(
    from: &'a AgentConfig,
    id: &str,
    find: &impl Fn(&str) -> Option<&'a AgentConfig>,
    seen: &mut BTreeSet<&'a str>,
) -> bool {
    if from.id == id {
        return true;
    }
    if !seen.insert(&from.id) {
        return false;
    }
    let members = from.members();
    members
        .iter()
        .filter_map(|(_, member)| find(member))
        .any(|member| reaches(member, id, find, seen))
}
