//! What tests share: a fixed clock, numbered ids, agents that behave as told, a faulty store, a
//! receiver of webhooks, and the agent for the official [integration test kit](itk).
//!
//! A dev-dependency only.
#![expect(
    clippy::unwrap_used,
    reason = "a step of a test bed that fails is a test that fails"
)]

mod agents;
mod bed;
mod env;
mod faults;
pub mod itk;
mod receiver;

pub use agents::{Behaviour, TestAgent, Trace};
pub use bed::{Bed, artifact_text, call, collect, send, sent_task, text_message, texts};
pub use env::{FixedClock, NumberedIds, RecordedSpans};
pub use faults::FaultyStore;
pub use receiver::{Answer, Notified, Receiver};
