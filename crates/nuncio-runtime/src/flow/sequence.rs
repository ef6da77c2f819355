//! One after another: what one gives is the message for the next.

use nuncio_protocol::AgentId;

use super::output::Output;
use super::step::{Flow, Stop, To};

/// One after another: what one gives is the message for the next.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Who, in this order.
    pub members: Vec<AgentId>,
    /// Whose artifacts become the task's.
    pub emit: Emit,
}

/// Whose artifacts become the task's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emit {
    /// Those of the last member.
    #[default]
    Last,
    /// Those of all members, each when it is done.
    All,
}

impl Sequence {
    pub(super) async fn play(&self, flow: &Flow<'_>) -> Result<Output, Stop> {
        let mut message = flow.message();
        let mut output = Output::default();
        for (index, member) in self.members.iter().enumerate() {
            let place = format!("step-{}", index + 1);
            let last = index + 1 == self.members.len();
            let into = if last { To::Task } else { To::Flow };
            output = flow.step(&place, member, message, into).await?;
            if self.emit == Emit::All && !last {
                flow.emit(&output, Some(&place)).await?;
            }
            message = flow.passed_on(&output);
        }
        Ok(output)
    }
}
