//! Agents made of other agents: one after another, side by side, again and again, by choice, or
//! along the edges of a graph.
//!
//! A flow keeps a [journal](journal::Journal) of its steps in its checkpoint. Whenever it runs, it
//! plays its plan from the start: steps that are done give what they gave before, the step that
//! asked gets the answer, the others run. So a plan is plain code, and pauses and restarts are the
//! business of [`Flow::step`](step::Flow::step) alone.

mod agent;
mod graph;
mod journal;
mod output;
mod parallel;
mod pause;
mod plan;
mod repeat;
mod route;
mod sequence;
mod step;

pub use agent::FlowAgent;
pub use graph::{Edge, Graph};
pub use parallel::{Join, Parallel};
pub use plan::{FindAgent, Plan};
pub use repeat::Rounds;
pub use route::{Choice, Route};
pub use sequence::{Emit, Sequence};
