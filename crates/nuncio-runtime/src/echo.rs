//! The agent that gives back what it gets.

use std::time::Duration;

use nuncio_engine::{Agent, AgentInfo, Input, Outcome, RunCx, RunFuture};
use nuncio_protocol::{AgentId, Artifact, Part};

use crate::script::turns;

/// Text in, one artifact with the same text out.
///
/// A text beginning with `hold` stays WORKING for 30 seconds first, for trying out cancel and
/// subscribe; a cancel ends it at once.
#[derive(Debug)]
pub struct EchoAgent {
    info: AgentInfo,
}

const HOLD: Duration = Duration::from_secs(30);

impl EchoAgent {
    /// The agent under this name.
    pub fn new(id: impl Into<AgentId>) -> Self {
        let id = id.into();
        let mut info = AgentInfo::new(
            id,
            "Echo",
            "Gives back the text it gets; a text beginning with `hold` takes 30 seconds.",
        );
        info.version = env!("CARGO_PKG_VERSION").to_owned();
        for skill in &mut info.skills {
            skill.examples = vec!["hello".to_owned(), "hold the line".to_owned()];
        }
        Self::with_info(info)
    }

    /// The agent with a description of its own.
    ///
    /// Its runs can always be repeated, and it always makes a task.
    pub fn with_info(mut info: AgentInfo) -> Self {
        info.resumable = true;
        info.answers_directly = false;
        Self { info }
    }
}

impl Agent for EchoAgent {
    fn info(&self) -> &AgentInfo {
        &self.info
    }

    fn run<'a>(&'a self, cx: &'a RunCx, input: Input) -> RunFuture<'a> {
        Box::pin(async move {
            let text = input.message.text();
            if text.starts_with("hold") {
                cx.status("holding for 30 seconds").await?;
                if !pause(cx, HOLD).await {
                    return Ok(Outcome::Done);
                }
            }
            // The same id in every attempt: a repeated run replaces its artifact.
            let id = format!("echo-{}", turns(&input).len());
            cx.artifact(Artifact::new(id, vec![Part::text(text)]))
                .await?;
            Ok(Outcome::Done)
        })
    }
}

/// Waits, but no longer than the task lives: `false` if it has been canceled.
pub(crate) async fn pause(cx: &RunCx, time: Duration) -> bool {
    tokio::select! {
        () = tokio::time::sleep(time) => true,
        () = cx.cancellation().cancelled() => false,
    }
}
