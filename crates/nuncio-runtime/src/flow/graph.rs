//! Along the edges of a graph.

use std::collections::BTreeMap;

use nuncio_protocol::AgentId;

use super::output::Output;
use super::step::{Flow, Stop, To};
use crate::When;

/// Agents as nodes, and edges that say who comes next.
///
/// A node without edges is an end: its artifacts become the task's. What a node gives is the
/// message for the next one.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The nodes by their names.
    pub nodes: BTreeMap<String, AgentId>,
    /// The edges; the first that fits what a node gave is taken.
    pub edges: Vec<Edge>,
    /// Where it begins.
    pub start: String,
    /// How often a node may be visited.
    pub limit: usize,
}

/// A way from one node to another.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Where it begins.
    pub from: String,
    /// Where it leads; [`Graph::END`] ends the flow with what `from` gave.
    pub to: String,
    /// What `from` must have given; anything will do if absent. `turn` counts its visits.
    pub when: Option<When>,
}

impl Graph {
    /// Visits of a node, unless said otherwise.
    pub const LIMIT: usize = 10;

    /// Where an edge leads that ends the flow.
    pub const END: &'static str = "end";

    pub(super) async fn play(&self, flow: &Flow<'_>) -> Result<Output, Stop> {
        let mut node = self.start.as_str();
        let mut message = flow.message();
        let mut visits: BTreeMap<&str, usize> = BTreeMap::new();
        loop {
            let visit = visits.entry(node).or_default();
            *visit += 1;
            if *visit > self.limit {
                let limit = self.limit;
                return Err(Stop::failed(format!(
                    "the flow visited node {node} more than {limit} times"
                )));
            }
            let agent = self.nodes.get(node);
            let agent = agent.ok_or_else(|| Stop::failed(format!("there is no node {node}")))?;
            let is_end = !self.edges.iter().any(|edge| edge.from == node);
            let into = if is_end { To::Task } else { To::Flow };
            let place = format!("{node}-{visit}");
            let output = flow.step(&place, agent, message, into).await?;
            if is_end {
                return Ok(output);
            }
            message = flow.passed_on(&output);
            let fits = |edge: &&Edge| {
                let when = edge.when.as_ref();
                edge.from == node && when.is_none_or(|when| when.holds(&message, *visit))
            };
            let edge = self.edges.iter().find(fits);
            let none = || Stop::failed(format!("no edge of node {node} fits what it gave"));
            let edge = edge.ok_or_else(none)?;
            if edge.to == Self::END {
                flow.emit(&output, None).await?;
                return Ok(output);
            }
            node = &edge.to;
        }
    }
}
