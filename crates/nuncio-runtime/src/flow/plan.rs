//! What a flow does, and where it finds who does it.

use std::sync::Arc;

use nuncio_engine::{Agent, Directory};
use nuncio_protocol::AgentId;

use super::output::Output;
use super::step::{Flow, Stop};
use super::{Graph, Parallel, Rounds, Route, Sequence};

/// Finds agents by their names, as they are at the moment.
pub trait FindAgent: Send + Sync {
    /// The agent of this name, if there is one.
    fn find(&self, id: &AgentId) -> Option<Arc<dyn Agent>>;
}

impl FindAgent for Directory {
    fn find(&self, id: &AgentId) -> Option<Arc<dyn Agent>> {
        self.agent(id)
    }
}

/// What a flow does.
#[derive(Clone, Debug)]
pub enum Plan {
    /// One after another.
    Sequence(Sequence),
    /// Side by side.
    Parallel(Parallel),
    /// Again and again.
    Repeat(Rounds),
    /// One of several.
    Route(Route),
    /// Along edges.
    Graph(Graph),
}

impl Plan {
    /// The agents that it may need, each once.
    pub fn members(&self) -> Vec<&AgentId> {
        let mut members = match self {
            Self::Sequence(plan) => plan.members.iter().collect(),
            Self::Parallel(plan) => plan.members.iter().collect(),
            Self::Repeat(plan) => plan.members.iter().collect(),
            Self::Route(plan) => plan.members(),
            Self::Graph(plan) => plan.nodes.values().collect::<Vec<_>>(),
        };
        members.sort_unstable();
        members.dedup();
        members
    }

    pub(super) async fn play(&self, flow: &Flow<'_>) -> Result<Output, Stop> {
        match self {
            Self::Sequence(plan) => plan.play(flow).await,
            Self::Parallel(plan) => plan.play(flow).await,
            Self::Repeat(plan) => plan.play(flow).await,
            Self::Route(plan) => plan.play(flow).await,
            Self::Graph(plan) => plan.play(flow).await,
        }
    }
}
