//! `nuncio demo`: a damaged order, told by two services that speak A2A with each other.
//!
//! Support and fulfilment are two servers on two ports, each with its own store. Their agents speak
//! with a model: a scripted one unless another is named. The story is the same with each; only the
//! words differ.

mod cast;
mod story;
mod tree;

use std::sync::Arc;

use nuncio_engine::{Agent, RandomIds};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::arguments::DemoArguments;
use crate::client::block_on;
use crate::config::{self, Config, Sources};
use crate::configuration::refused;
use crate::outcome::{Failure, Outcome};
use crate::serve::{self, Begun};
use crate::surroundings::Surroundings;

use cast::Cast;

/// Plays it.
pub(crate) fn run(arguments: &DemoArguments, around: &Surroundings) -> Outcome {
    block_on(async {
        let cast = Cast::of(arguments, around)?;
        let fulfilment = Service::start(cast.fulfilment()?, arguments.ports.get(1)).await?;
        let support = cast.support(&fulfilment.url)?;
        let support = Service::start(support, arguments.ports.first()).await?;
        let told = story::tell(&support, &fulfilment, &cast).await;
        support.stop().await?;
        fulfilment.stop().await?;
        told
    })
}

/// One of the two servers.
struct Service {
    url: String,
    agent: nuncio_protocol::AgentId,
    begun: Begun,
    config: Config,
    stop: CancellationToken,
    served: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Service {
    async fn start(agent: Arc<dyn Agent>, port: Option<&u16>) -> Outcome<Self> {
        let address = format!("127.0.0.1:{}", port.copied().unwrap_or(0));
        let failed = |error| serve::failed(&format!("listen on {address}"), &error);
        let listener = TcpListener::bind(&address).await.map_err(failed)?;
        let url = format!("http://{}", listener.local_addr().map_err(failed)?);
        let sources = Sources {
            file: None,
            environment: Default::default(),
            flags: vec![("store.url", "store.url", "memory:".into())],
            insecure: false,
        };
        let config = config::load(sources).map_err(refused)?.config;
        let id = agent.info().id.clone();
        let nowhere = Surroundings::default();
        let begun = serve::assembled(&config, &nowhere, &url, vec![agent]).await?;
        let (server, stop) = (begun.parts.server.clone(), CancellationToken::new());
        let served = tokio::spawn({
            let stop = stop.clone();
            async move { server.run(listener, stop).await }
        });
        Ok(Self {
            url,
            agent: id,
            begun,
            config,
            stop,
            served,
        })
    }

    async fn stop(self) -> Outcome {
        self.stop.cancel();
        let _ = self.served.await;
        serve::dismantle(self.begun, &self.config).await
    }
}

fn trouble(doing: &str) -> impl Fn(nuncio_protocol::A2aError) -> Failure + '_ {
    move |error| Failure::internal(format!("failed to {doing}: {error}"))
}

fn ids() -> Arc<RandomIds> {
    Arc::new(RandomIds)
}
