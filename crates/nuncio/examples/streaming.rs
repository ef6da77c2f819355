//! Says its answer word by word, and stops when it is canceled.

use std::time::Duration;

use nuncio::{AgentInfo, HostError, Input, RunCx, agent_fn};

fn main() -> Result<(), HostError> {
    let info = AgentInfo::new("reader", "Reader", "Reads aloud what it is given, slowly.");
    nuncio::serve(agent_fn(info, |cx: RunCx, input: Input| async move {
        cx.status("reading").await?;
        for word in input.message.text().split_inclusive(' ') {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(200)) => cx.text(word).await?,
                () = cx.cancellation().cancelled() => return Ok(()),
            }
        }
        Ok(())
    }))
}
