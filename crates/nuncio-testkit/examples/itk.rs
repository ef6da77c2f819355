//! The agent for the integration test kit `a2aproject/a2a-itk`, as the kit starts one: with two ports.
//!
//! The port for gRPC serves all bindings, and the card says so. The other one has what the kit
//! looks for by itself: the card, and JSON-RPC below `/jsonrpc`. See `tests/itk/README.md`.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use clap::Parser;
use http::{Request, Uri};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use nuncio_client::ClientBuilder;
use nuncio_egress::{Egress, EgressPolicy};
use nuncio_engine::{
    AgentError, DeliverySettings, Engine, Environment, RandomIds, Settings, SystemClock,
};
use nuncio_protocol::{AgentCard, AgentService, Binding};
use nuncio_server::{Authenticator, Endpoint, Server, Switchboard};
use nuncio_store::{MemoryOptions, MemoryStore};
use nuncio_testkit::itk::{ItkAgent, PeerFuture, Peers};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

/// Serves the agent on this machine until it is killed.
#[derive(Debug, Parser)]
#[command(rename_all = "camelCase")]
struct Arguments {
    /// Where the kit looks for the card and sends its own message.
    #[arg(long)]
    http_port: u16,
    /// Where other agents call.
    #[arg(long)]
    grpc_port: u16,
}

/// Agents on the network.
#[derive(Debug)]
struct Network(Egress);

impl Peers for Network {
    fn find<'a>(&'a self, card_url: &'a str, binding: Binding) -> PeerFuture<'a> {
        Box::pin(async move {
            let builder = ClientBuilder::new(self.0.clone()).binding(binding);
            let client = builder.connect(card_url).await;
            let client = client.map_err(|error| {
                AgentError::new(format!(
                    "failed to reach {card_url} over {binding:?}: {error}"
                ))
            })?;
            Ok(Arc::new(client) as _)
        })
    }
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt().with_writer(io::stderr).init();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.grpc_port)).await?;
    let front = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.http_port)).await?;

    let egress = Egress::new(EgressPolicy::open()).map_err(io::Error::other)?;
    let store = Arc::new(MemoryStore::new(MemoryOptions::default()));
    let engine = Engine::new(store, Environment::system([0; 32]), Settings::default());
    let deliverer = engine.deliverer(egress.clone(), DeliverySettings::default());
    let agent = engine.host(Arc::new(ItkAgent::new(Arc::new(Network(egress)))));
    let server = server(arguments.grpc_port, agent.card(), agent)?;

    let shutdown = CancellationToken::new();
    let delivered = deliverer.run(shutdown.clone());
    let served = server.run(listener, shutdown.clone());
    tokio::select! {
        ended = served => ended,
        ended = serve_front(front, &server) => ended,
        () = delivered => Ok(()),
        () = engine.maintain(shutdown) => Ok(()),
    }
}

fn server(port: u16, card: AgentCard, agent: Arc<dyn AgentService>) -> io::Result<Server> {
    let switchboard = Arc::new(Switchboard::new());
    let endpoint = Endpoint::new("itk", card, agent);
    switchboard.insert(endpoint).map_err(io::Error::other)?;
    switchboard.set_default(Some("itk".into()));
    let mut settings = nuncio_server::Settings::default();
    settings.public_url = Some(format!("http://127.0.0.1:{port}"));
    Ok(Server::new(
        settings,
        Authenticator::anonymous(),
        switchboard,
        Arc::new(SystemClock),
        Arc::new(RandomIds),
    ))
}

/// Serves the agent below `/jsonrpc` too.
async fn serve_front(listener: TcpListener, server: &Server) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        let server = server.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            if request.uri().path().trim_end_matches('/') == "/jsonrpc" {
                *request.uri_mut() = Uri::from_static("/");
            }
            server.clone().call(request)
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::spawn(connection);
    }
}
