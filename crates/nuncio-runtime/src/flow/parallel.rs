//! Side by side: all members get the message.

use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use nuncio_protocol::{AgentId, Artifact};

use super::output::Output;
use super::step::{Flow, Stop, To};

/// Side by side: all members get the message.
///
/// Their artifacts become the task's in the order of the members, once enough are done.
#[derive(Clone, Debug)]
pub struct Parallel {
    /// Who.
    pub members: Vec<AgentId>,
    /// How many must be done; the rest are canceled then.
    pub join: Join,
    /// How many work at once.
    pub concurrency: usize,
}

/// How many members must be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Join {
    /// All of them; one that fails fails the flow.
    #[default]
    All,
    /// So many; the others may fail.
    Count(usize),
}

/// How long canceled members may take to end before they are dropped.
const GRACE: Duration = Duration::from_secs(2);

impl Parallel {
    /// Members at once, unless said otherwise.
    pub const CONCURRENCY: usize = 8;

    pub(super) async fn play(&self, flow: &Flow<'_>) -> Result<Output, Stop> {
        let outputs = self.run(flow).await?;
        for (index, output) in outputs.iter().enumerate() {
            if let Some(output) = output {
                flow.emit(&in_artifacts(output), Some(&place(index)))
                    .await?;
            }
        }
        Ok(Output::default())
    }

    /// Runs members until enough are done, and gives what these gave, by their index.
    async fn run(&self, flow: &Flow<'_>) -> Result<Vec<Option<Output>>, Stop> {
        let count = self.members.len();
        let needed = match self.join {
            Join::All => count,
            Join::Count(needed) => needed.clamp(1, count.max(1)),
        };
        let message = flow.message();
        let step = |index: usize| {
            let message = message.clone();
            async move {
                let place = place(index);
                let step = flow.step(&place, &self.members[index], message, To::Flow);
                (index, step.await)
            }
        };
        let mut waiting = 0..count;
        let mut running: FuturesUnordered<_> = waiting
            .by_ref()
            .take(self.concurrency.max(1))
            .map(step)
            .collect();
        let mut outputs: Vec<Option<Output>> = vec![None; count];
        let mut paused: Vec<(usize, Stop)> = Vec::new();
        let (mut done, mut failed) = (0, 0);
        while let Some((index, ended)) = running.next().await {
            match ended {
                Ok(output) => {
                    outputs[index] = Some(output);
                    done += 1;
                }
                Err(stop @ Stop::Paused { .. }) => paused.push((index, stop)),
                Err(stop) => {
                    failed += 1;
                    if flow.is_canceled() || count - failed < needed {
                        end_all(flow, &mut running).await;
                        return Err(stop);
                    }
                }
            }
            if done >= needed {
                end_all(flow, &mut running).await;
                return Ok(outputs);
            }
            running.extend(waiting.next().map(step));
        }
        // One question at a time: the first member's.
        let first = paused.into_iter().min_by_key(|(index, _)| *index);
        Err(first.map_or(Stop::Canceled, |(_, stop)| stop))
    }
}

/// Cancels what still runs, and lets it notice.
async fn end_all<F: Future>(flow: &Flow<'_>, running: &mut FuturesUnordered<F>) {
    flow.cancel_steps();
    let ended = async { while running.next().await.is_some() {} };
    let _ = tokio::time::timeout(GRACE, ended).await;
}

fn place(index: usize) -> String {
    format!("member-{}", index + 1)
}

/// What a member only said is not lost among the others.
fn in_artifacts(output: &Output) -> Output {
    let mut output = output.clone();
    if let Some(said) = output.said.take().filter(|_| output.artifacts.is_empty()) {
        output.artifacts.push(Artifact::new("said", said.parts));
    }
    output
}
