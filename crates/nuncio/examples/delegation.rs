//! An agent that asks another one somewhere else: `cargo run --example delegation -- URL [ADDRESS]`.
//!
//! What the other one asks reaches our caller, and the answer goes back to it; a cancel reaches it too.

use nuncio::egress::{Egress, EgressPolicy};
use nuncio::remote::ClientBuilder;
use nuncio::runtime::RemoteAgent;
use nuncio::{Agent as _, AgentInfo, Host, Input, RunCx, agent_fn};
use std::sync::Arc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args()
        .nth(1)
        .ok_or("usage: delegation URL [ADDRESS]")?;
    let address = std::env::args().nth(2);
    // `EgressPolicy::default()` refuses private addresses.
    let client = ClientBuilder::new(Egress::new(EgressPolicy::open())?);
    let info = AgentInfo::new("expert", "Expert", "Knows.");
    let expert = Arc::new(RemoteAgent::new(info, client, url));
    let info = AgentInfo::new("desk", "Desk", "Passes questions on to the expert.");
    let desk = agent_fn(info, move |cx: RunCx, input: Input| {
        let expert = Arc::clone(&expert);
        async move {
            cx.status("asking the expert").await?;
            let within = cx.child(&expert.info().id, "expert")?;
            let question = input.for_child(&within, input.message.clone());
            expert.run(&within, question).await
        }
    });
    let address = address.unwrap_or_else(|| "127.0.0.1:8081".to_owned());
    Ok(Host::new().agent(desk).listen(address).serve()?)
}
