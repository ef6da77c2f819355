//! Again and again, until it is good.

use nuncio_protocol::AgentId;

use super::output::Output;
use super::step::{Flow, Stop, To};
use crate::When;

/// A sequence that is played again and again; each round begins with what the last one gave.
///
/// Only the artifacts of the last round become the task's.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// Who, in this order, in each round.
    pub members: Vec<AgentId>,
    /// What the last member's words must be like to end it; `{"done": true}` as data always does.
    pub until: Option<When>,
    /// Rounds at most.
    pub limit: usize,
    /// Whether the task is COMPLETED at the limit, rather than FAILED.
    pub complete_at_limit: bool,
}

impl Rounds {
    /// Rounds, unless said otherwise.
    pub const LIMIT: usize = 10;

    pub(super) async fn play(&self, flow: &Flow<'_>) -> Result<Output, Stop> {
        let mut message = flow.message();
        for round in 1..=self.limit {
            let mut output = Output::default();
            for (index, member) in self.members.iter().enumerate() {
                let place = format!("round-{round}.step-{}", index + 1);
                output = flow.step(&place, member, message, To::Flow).await?;
                message = flow.passed_on(&output);
            }
            let good = self.until.as_ref();
            let good = good.is_some_and(|until| until.holds(&message, round));
            let spent = round == self.limit && self.complete_at_limit;
            if good || output.says_done() || spent {
                flow.emit(&output, None).await?;
                return Ok(output);
            }
        }
        let limit = self.limit;
        Err(Stop::failed(format!(
            "the flow did not come to its end in {limit} rounds"
        )))
    }
}
