//! The shortest agent: `cargo run --example hello`, then `nuncio send -a http://127.0.0.1:8080 world`.

use nuncio::{AgentInfo, HostError, agent_fn};

fn main() -> Result<(), HostError> {
    let info = AgentInfo::new("hello", "Hello", "Greets whoever writes.");
    nuncio::serve(agent_fn(info, |_, input| async move {
        Ok(format!("Hello, {}!", input.message.text()))
    }))
}
