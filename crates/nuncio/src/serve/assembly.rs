//! Putting the crates together: store, engine, agents, server, and what goes on beside them.

use std::sync::Arc;
use std::time::Duration;

use nuncio_egress::Egress;
use nuncio_engine::{
    Agent, Deliverer, Engine, Environment, RandomIds, SystemClock, TextSealer, WebhookSigning,
};
use nuncio_protocol::SpanSink;
use nuncio_server::{RateLimit, ReadinessCheck, Server, Settings};
use nuncio_store::{OpenOptions, Store, is_shared, shown_url};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::administrators::Administrators;
use super::agents::Agents;
use super::{admission, secrets};
use crate::config::{Config, LayersByName, Workshop, make_layers, network};
use crate::outcome::{Failure, Outcome};
use crate::surroundings::Surroundings;
use crate::telemetry::{self, Carrier};

/// Everything that a server is made of, before it does anything.
pub(super) struct Assembly {
    store: Arc<dyn Store>,
    engine: Engine,
    pub(super) server: Server,
    deliverer: Option<Deliverer>,
    carrier: Option<Carrier>,
}

/// What answers.
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) engine: Engine,
    pub(crate) server: Server,
}

/// What goes on beside the answers.
pub(crate) struct Background {
    shutdown: CancellationToken,
    maintained: JoinHandle<()>,
    swept: JoinHandle<()>,
    /// Runs that end while the server stops are still told, so that it outlives them.
    quiet: CancellationToken,
    delivered: Option<JoinHandle<()>>,
    silent: CancellationToken,
    carried: Option<JoinHandle<()>>,
}

/// A server whose work has begun.
pub(crate) struct Begun {
    pub(crate) parts: Parts,
    pub(crate) background: Background,
}

impl Assembly {
    /// Opens and makes everything; `base` is the address for those who ask here, `own` are agents
    /// beside those of the configuration.
    pub(super) async fn of(
        config: &Config,
        around: &Surroundings,
        base: &str,
        own: Vec<Arc<dyn Agent>>,
    ) -> Outcome<Self> {
        let (store, token_key) = open(config, around).await?;
        let mut engine_settings = config.engine.settings();
        engine_settings.max_webhooks_per_task = config.webhooks.max_per_task;
        engine_settings.return_webhook_secrets = config.webhooks.return_secrets;
        let environment = Environment::system(token_key);
        let engine = Engine::new(Arc::clone(&store), environment, engine_settings);
        let (sink, carrier) = spans(config, around)?.unzip();
        let engine = match &sink {
            Some(sink) => engine.with_spans(Arc::clone(sink)),
            None => engine,
        };
        let signing = secrets::webhook_signing(config, base)?;
        let webhook_keys = signing.signer.public_keys();
        let deliverer = deliverer(config, &engine, signing)?;
        let kept = config.store_url() != "memory:";
        let workshop = workshop(config, around, &engine)?;
        let sealer = TextSealer::new(&token_key);
        let hosted = Agents::start(config, &engine, workshop, sealer, kept, own)?;
        let administration = Administrators::new(Arc::clone(&hosted), engine.webhooks());
        let mut server_settings = settings(config)?;
        server_settings.webhook_keys = webhook_keys;
        let server = Server::new(
            server_settings,
            admission::authenticator(config)?,
            Arc::clone(hosted.switchboard()),
            Arc::new(SystemClock),
            Arc::new(RandomIds),
        )
        .with_readiness(readiness(&engine))
        .with_administration(Arc::new(administration));
        let server = match sink {
            Some(sink) => server.with_spans(sink),
            None => server,
        };
        Ok(Self {
            store,
            engine,
            server,
            deliverer,
            carrier,
        })
    }

    /// Begins what goes on beside the answers.
    pub(super) fn begin(self, config: &Config) -> Begun {
        let Self {
            store,
            engine,
            server,
            deliverer,
            carrier,
        } = self;
        let (shutdown, quiet, silent) = Default::default();
        let background = Background {
            maintained: tokio::spawn(maintain(
                engine.clone(),
                CancellationToken::clone(&shutdown),
            )),
            swept: tokio::spawn({
                let (engine, shutdown) = (engine.clone(), CancellationToken::clone(&shutdown));
                let retention = config.retention.settings();
                async move { engine.keep(retention, shutdown).await }
            }),
            delivered: deliverer
                .map(|deliverer| tokio::spawn(deliverer.run(CancellationToken::clone(&quiet)))),
            carried: carrier
                .map(|carrier| tokio::spawn(carrier.run(CancellationToken::clone(&silent)))),
            shutdown,
            quiet,
            silent,
        };
        let parts = Parts {
            store,
            engine,
            server,
        };
        Begun { parts, background }
    }
}

impl Background {
    /// Ends it all, once nothing is answered any more; the store is still open.
    pub(crate) async fn end(self) {
        self.shutdown.cancel();
        self.quiet.cancel();
        let _ = tokio::join!(self.maintained, self.swept);
        if let Some(delivered) = self.delivered {
            let _ = delivered.await;
        }
        self.silent.cancel();
        if let Some(carried) = self.carried {
            let _ = tokio::time::timeout(LAST_SPANS, carried).await;
        }
    }
}

async fn maintain(engine: Engine, shutdown: CancellationToken) {
    let maintained = engine.maintain(shutdown.clone());
    tokio::join!(maintained, take_up(&engine, &shutdown));
}

fn workshop(config: &Config, around: &Surroundings, engine: &Engine) -> Outcome<Workshop> {
    let egress = Egress::new(config.outbound.policy()).map_err(|error| {
        Failure::internal(format!("failed to prepare calling services: {error}"))
    })?;
    Ok(Workshop {
        environment: around.environment.clone(),
        egress,
        models: config.models.clone(),
        mcp: config.mcp.clone(),
        openapi: config.openapi.clone(),
        layers: layers(config)?,
        agents: engine.directory(),
    })
}

fn layers(config: &Config) -> Outcome<LayersByName> {
    let folder = &config.server.data;
    if config.layers.values().any(|layer| layer.file.is_some()) {
        secrets::make_private_folder(folder).map_err(|error| {
            super::failed(&format!("make the folder {}", folder.display()), &error)
        })?;
    }
    make_layers(&config.layers, folder)
        .map_err(|why| Failure::usage(format!("failed to make a layer: {why}")))
}

/// Takes up what an earlier process left, however many tasks that are: requests are served meanwhile.
async fn take_up(engine: &Engine, shutdown: &CancellationToken) {
    loop {
        match engine.recover().await {
            Ok(0) => return,
            Ok(runs) => return tracing::info!(runs, "took up what an earlier process left"),
            Err(error) => tracing::warn!(%error, "failed to take up earlier tasks; trying again"),
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

/// What calls webhooks, unless they are switched off.
fn deliverer(
    config: &Config,
    engine: &Engine,
    signing: WebhookSigning,
) -> Outcome<Option<Deliverer>> {
    let webhooks = &config.webhooks;
    if !webhooks.enabled {
        return Ok(None);
    }
    let egress = Egress::new(webhooks.policy()).map_err(|error| {
        Failure::internal(format!("failed to prepare calling webhooks: {error}"))
    })?;
    Ok(Some(engine.deliverer(egress, webhooks.settings(signing))))
}

/// How long the collector has for the last spans.
const LAST_SPANS: Duration = Duration::from_secs(5);

/// The way to the collector of spans, if there is one.
fn spans(config: &Config, around: &Surroundings) -> Outcome<Option<(Arc<dyn SpanSink>, Carrier)>> {
    let unusable = |why| Failure::usage(format!("failed to prepare telling of spans: {why}"));
    let Some(collector) = config.telemetry.collector(around).map_err(unusable)? else {
        return Ok(None);
    };
    let (exporter, carrier) = telemetry::exporter(collector).map_err(unusable)?;
    Ok(Some((Arc::new(exporter), carrier)))
}

/// What a service that speaks S3 is told, by the names that its other clients know.
const S3_SETTINGS: [&str; 9] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ALLOW_HTTP",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
];

/// Opens the store, and finds or makes the secrets that belong to it.
async fn open(config: &Config, around: &Surroundings) -> Outcome<(Arc<dyn Store>, [u8; 32])> {
    let url = config.store_url();
    if url != "memory:" {
        secrets::make_folder(&config.server.data)?;
    }
    let store = nuncio_store::open(&url, options(config, around))
        .await
        .map_err(|error| {
            let shown = shown_url(&url);
            let failure = Failure::internal(format!("failed to open the store {shown}: {error}"));
            if is_shared(&url) {
                failure.hint(
                    "see that the database is there and lets us in; --store names another one",
                )
            } else {
                failure.hint("`nuncio db check` looks at it; --data or --store names another one")
            }
        })?;
    let key = token_key(config, &url, &*store).await?;
    Ok((store, key))
}

fn options(config: &Config, around: &Surroundings) -> OpenOptions {
    let mut options = OpenOptions::default();
    options.wake_ups.clone_from(&config.store.wake_ups);
    let parts = &mut options.parts;
    parts.place.clone_from(&config.store.parts);
    parts.above = match config.store.parts_above_bytes {
        0 => usize::MAX,
        bytes => bytes,
    };
    let settings = around.environment.iter();
    parts.service = settings
        .filter(|(name, _)| S3_SETTINGS.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    options
}

/// What authenticates page tokens: the store's, if several servers share it, else this server's.
async fn token_key(config: &Config, url: &str, store: &dyn Store) -> Outcome<[u8; 32]> {
    let shared = store.shared_secret(secrets::fresh_key()?).await;
    let shared = shared.map_err(|error| {
        Failure::internal(format!("failed to read the secret of the store: {error}"))
    })?;
    match shared {
        Some(key) => Ok(key),
        None if url == "memory:" => secrets::fresh_key(),
        None => secrets::token_key(&config.server.data),
    }
}

fn readiness(engine: &Engine) -> ReadinessCheck {
    let engine = engine.clone();
    Arc::new(move || {
        let engine = engine.clone();
        Box::pin(async move { engine.ready().await.is_ok() })
    })
}

fn settings(config: &Config) -> Outcome<Settings> {
    let server = &config.server;
    let mut settings = Settings::default();
    settings.public_url = server
        .public_url
        .as_ref()
        .map(|url| url.trim_end_matches('/').to_owned());
    settings.grpc = server.grpc;
    settings.grpc_address.clone_from(&server.grpc_address);
    settings.trusted_proxies = server
        .trusted_proxies
        .iter()
        .filter_map(|net| network(net))
        .collect();
    settings.cors_origins.clone_from(&server.cors);
    settings.max_body_bytes = server.max_body_bytes;
    settings.max_connections = server.max_connections;
    settings.heartbeat = Duration::from_secs(server.heartbeat_seconds);
    settings.head_timeout = Duration::from_secs(server.head_seconds);
    settings.keep_alive = Duration::from_secs(server.keep_alive_seconds);
    settings.card_max_age = Duration::from_secs(server.card_max_age_seconds);
    settings.max_streams_per_caller = server.max_streams_per_caller;
    settings.rate_limit = (server.requests_per_second > 0).then(|| RateLimit {
        per_second: server.requests_per_second.into(),
        burst: server.request_burst,
    });
    settings.drain_timeout = Duration::from_secs(server.drain_seconds.clamp(1, 10));
    settings.tls = server.tls.as_ref().map(admission::tls).transpose()?;
    settings.card_key = server
        .card_key
        .as_deref()
        .map(secrets::card_key)
        .transpose()?;
    Ok(settings)
}
