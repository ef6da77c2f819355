//! An agent whose results tell which attempt made which step.

use std::time::Duration;

use nuncio_engine::{Agent, AgentError, AgentInfo, Input, Outcome, Pause, RunCx, RunFuture};
use nuncio_protocol::{Artifact, Part};
use serde_json::json;

/// Does the steps that a message asks for (`work 5`), or asks back first (`ask 2`).
#[derive(Debug)]
pub(crate) struct Stepper(AgentInfo);

impl Stepper {
    pub(crate) fn new(id: &str, resumable: bool) -> Self {
        let mut info = AgentInfo::new(id, id, "Works in steps.");
        info.resumable = resumable;
        Self(info)
    }

    async fn work(cx: &RunCx, input: &Input, steps: u64) -> Result<(), AgentError> {
        let done = input.checkpoint.as_ref();
        let message = input.message.message_id.as_str();
        let done = done.filter(|done| done["message"] == message);
        let first = done.and_then(|done| done["step"].as_u64()).unwrap_or(0) + 1;
        for step in first..=steps {
            tokio::time::sleep(Duration::from_millis(300)).await;
            cx.checkpoint(&json!({"message": message, "step": step}))?;
            let text = format!("{message} {step} {}", cx.attempt());
            let id = format!("{message}-{step}");
            cx.artifact(Artifact::new(id, vec![Part::text(text)]))
                .await?;
        }
        Ok(())
    }
}

impl Agent for Stepper {
    fn info(&self) -> &AgentInfo {
        &self.0
    }

    fn run<'a>(&'a self, cx: &'a RunCx, input: Input) -> RunFuture<'a> {
        Box::pin(async move {
            let text = input.message.text();
            let (what, steps) = text.split_once(' ').unwrap_or(("work", "1"));
            Self::work(cx, &input, steps.parse().unwrap_or(1)).await?;
            Ok(match what {
                "ask" => Outcome::Paused(Pause::input(cx.message(vec![Part::text("go on?")]))),
                _ => Outcome::Done,
            })
        })
    }
}
