//! Asks for what it does not know. The answer resumes the same task, after a restart of this program too.

use nuncio::{AgentInfo, HostError, Input, Outcome, Part, Pause, RunCx, agent_fn};
use serde_json::json;

fn main() -> Result<(), HostError> {
    let mut info = AgentInfo::new("booking", "Booking", "Books a table.");
    // A crash between two steps is no reason to fail: the checkpoint tells where it was.
    info.resumable = true;
    nuncio::serve(agent_fn(info, book))
}

async fn book(cx: RunCx, input: Input) -> Result<Outcome, nuncio::AgentError> {
    let said = input.message.text();
    match input.checkpoint {
        None => {
            cx.checkpoint(&json!({ "wish": said }))?;
            let question = cx.message(vec![Part::text("For how many?")]);
            Ok(Outcome::Paused(Pause::input(question)))
        }
        Some(known) => {
            let wish = known["wish"].as_str().unwrap_or_default();
            cx.text(format!("Booked: {wish}, for {said}.")).await?;
            Ok(Outcome::Done)
        }
    }
}
