//! An agent beside the routes of an axum application: the agent is at `/a2a`.

use axum::Router;
use axum::routing::get;
use nuncio::{AgentInfo, Host, agent_fn};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:8080")).await?;
    let base = format!("http://{}", listener.local_addr()?);

    let info = AgentInfo::new("hello", "Hello", "Greets whoever writes.");
    let agent = agent_fn(info, |_, input| async move {
        Ok(format!("Hello, {}!", input.message.text()))
    });
    let host = Host::new().agent(agent).store("memory:");
    let mounted = host.mount(format!("{base}/a2a")).await?;

    let application = Router::new()
        .route(
            "/",
            get(|| async { "This application has an agent at /a2a.\n" }),
        )
        .nest_service("/a2a", mounted.service());
    println!("ready {base}");
    let served = axum::serve(listener, application);
    served
        .with_graceful_shutdown(async { drop(nuncio::shutdown_signal().await) })
        .await?;
    Ok(mounted.stop().await?)
}
