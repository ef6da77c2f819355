//! Following instructions.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use nuncio_engine::{Agent, AgentError, AgentInfo, Input, Outcome, RunCx, RunFuture};
use nuncio_protocol::{AgentService, Binding, Part};

use super::instruction::{Instruction, MEDIA_TYPE, Step};
use super::visit;

/// Ends the answer of a task that is held; then there is nothing more to wait for.
pub(super) const FINISHED: &str = "task-finished";
/// How often a held task gives a sign of life, and how many times, as the kit's own agents do.
const TICK: Duration = Duration::from_secs(2);
const TICKS: u32 = 5;

/// The way to other agents.
pub trait Peers: fmt::Debug + Send + Sync {
    /// Finds the agent whose card is below `card_url`, to be called over `binding`.
    fn find<'a>(&'a self, card_url: &'a str, binding: Binding) -> PeerFuture<'a>;
}

/// Another agent, once it is found.
pub type PeerFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Arc<dyn AgentService>, AgentError>> + Send + 'a>>;

/// An agent that follows the kit's instructions.
///
/// What it has to say is a status message, since the kit reads no artifacts.
#[derive(Debug)]
pub struct ItkAgent {
    info: AgentInfo,
    peers: Arc<dyn Peers>,
}

impl ItkAgent {
    /// The agent under the name `itk`, which finds others through `peers`.
    pub fn new(peers: Arc<dyn Peers>) -> Self {
        let mut info = AgentInfo::new(
            "itk",
            "Nuncio in the ITK",
            "Follows the instructions of the A2A integration test kit.",
        );
        info.input_modes.push(MEDIA_TYPE.to_owned());
        Self { info, peers }
    }

    /// Follows an instruction and gives all that was said.
    fn follow<'a>(
        &'a self,
        cx: &'a RunCx,
        instruction: &'a Instruction,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<String>, AgentError>> + Send + 'a>> {
        Box::pin(async move {
            match &instruction.step {
                Some(Step::ReturnResponse(said)) => Ok(vec![said.response.clone()]),
                Some(Step::CallAgent(call)) => visit::visit(cx, &*self.peers, call).await,
                Some(Step::Steps(series)) => {
                    let mut said = Vec::new();
                    for step in &series.instructions {
                        said.extend(self.follow(cx, step).await?);
                    }
                    Ok(said)
                }
                None => Err(AgentError::new("an instruction is empty")),
            }
        })
    }
}

impl Agent for ItkAgent {
    fn info(&self) -> &AgentInfo {
        &self.info
    }

    fn run<'a>(&'a self, cx: &'a RunCx, input: Input) -> RunFuture<'a> {
        Box::pin(async move {
            cx.working().await?;
            let instruction = Instruction::of(&input.message)
                .ok_or_else(|| AgentError::new("the message carries no instruction"))?;
            let mut said = self.follow(cx, &instruction).await?.join("\n");
            if instruction.holds_task() {
                said = format!("{said}\n{FINISHED}");
                cx.status(said.as_str()).await?;
                hold(cx).await?;
            }
            Ok(Outcome::Said(cx.message(vec![Part::text(said)])))
        })
    }
}

/// Keeps the task open until its time is over or it is canceled.
async fn hold(cx: &RunCx) -> Result<(), AgentError> {
    for _ in 0..TICKS {
        tokio::select! {
            () = tokio::time::sleep(TICK) => cx.working().await?,
            () = cx.cancellation().cancelled() => break,
        }
    }
    Ok(())
}
