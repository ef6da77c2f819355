//! An agent for the integration test kit `a2aproject/a2a-itk`.
//!
//! The kit sends one nested [`Instruction`] to one agent. Each agent says its part, calls the next
//! agent over the binding it is told, and gives back all that was said. The kit looks whether each
//! hop has left its word. [`ItkAgent`] follows instructions, [`Peers`] leads it to other agents. The
//! example `itk` serves all this.

mod agent;
mod instruction;
mod visit;

#[cfg(test)]
mod tests;

pub use agent::{ItkAgent, PeerFuture, Peers};
pub use instruction::{
    Behavior, CallAgent, Instruction, PushNotification, Resubscribe, ReturnResponse, SendMessage,
    SeriesOfSteps, Step,
};
