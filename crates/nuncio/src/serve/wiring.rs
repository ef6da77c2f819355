//! Putting the crates together: store, engine, agents, server, and the way they end.

use std::sync::Arc;
use std::time::Duration;

use nuncio_egress::Egress;
use nuncio_engine::{
    Deliverer, Engine, Environment, RandomIds, SystemClock, TextSealer, WebhookSigning,
};
use nuncio_protocol::SpanSink;
use nuncio_server::{RateLimit, ReadinessCheck, Server, Settings, Workers};
use nuncio_store::{OpenOptions, Store, StoreError, is_shared, shown_url};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::administrators::Administrators;
use super::agents::Agents;
use super::supervisor::{self, Word};
use super::{admission, announce, failed, secrets};
use crate::config::{Config, Workshop, network};
use crate::outcome::{Failure, Outcome, print};
use crate::signals::Signals;
use crate::surroundings::Surroundings;
use crate::telemetry::{self, Carrier};

/// Serves until a signal comes, then ends in order: no new work, runs get their time, streams
/// close, what still runs is left to be recovered. A second signal ends the process at once.
pub(crate) async fn serve(config: &Config, around: &Surroundings, workers: &Workers) -> Outcome {
    let mut signals = Signals::listen().map_err(|error| failed("listen to signals", &error))?;
    let listener = bind(config).await?;
    let address = listener
        .local_addr()
        .map_err(|error| failed("listen", &error))?;
    let (store, token_key) = open(config, around).await?;
    let mut engine_settings = config.engine.settings();
    engine_settings.max_webhooks_per_task = config.webhooks.max_per_task;
    engine_settings.return_webhook_secrets = config.webhooks.return_secrets;
    let engine = Engine::new(
        Arc::clone(&store),
        Environment::system(token_key),
        engine_settings,
    );
    let (sink, carrier) = match spans(config, around)? {
        Some((sink, carrier)) => (Some(sink), Some(carrier)),
        None => (None, None),
    };
    let engine = match &sink {
        Some(sink) => engine.with_spans(Arc::clone(sink)),
        None => engine,
    };
    let base = announce::base_url(address, config.server.tls.is_some());
    let signing = secrets::webhook_signing(config, &base)?;
    let webhook_keys = signing.signer.public_keys();
    let deliverer = deliverer(config, &engine, signing)?;
    let kept = config.store_url() != "memory:";
    let egress = Egress::new(config.outbound.policy()).map_err(|error| {
        Failure::internal(format!("failed to prepare calling services: {error}"))
    })?;
    let workshop = Workshop {
        environment: around.environment.clone(),
        egress,
        agents: engine.directory(),
    };
    let hosted = Agents::start(config, &engine, workshop, TextSealer::new(&token_key), kept)?;
    let agents = hosted.switchboard().ids();
    let administration = Arc::new(Administrators::new(Arc::clone(&hosted), engine.webhooks()));
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
    .with_administration(administration);
    let server = match sink {
        Some(sink) => server.with_spans(sink),
        None => server,
    };

    let shutdown = CancellationToken::new();
    let maintained = tokio::spawn({
        let (engine, shutdown) = (engine.clone(), shutdown.clone());
        async move {
            let maintained = engine.maintain(shutdown.clone());
            tokio::join!(maintained, take_up(&engine, &shutdown));
        }
    });
    let swept = tokio::spawn({
        let (engine, shutdown) = (engine.clone(), shutdown.clone());
        let retention = config.retention.settings();
        async move { engine.keep(retention, shutdown).await }
    });
    // Runs that end while the server stops are still told, so that it outlives them.
    let quiet = CancellationToken::new();
    let delivered = deliverer.map(|deliverer| tokio::spawn(deliverer.run(quiet.clone())));
    let silent = CancellationToken::new();
    let carried = carrier.map(|carrier| tokio::spawn(carrier.run(silent.clone())));
    print(&announce::lines(
        &base,
        &agents,
        !config.auth.takes_anonymous(),
    ))?;
    tracing::info!(server.address = %address, "serving");

    supervisor::tell(Word::Ready);

    let asked = CancellationToken::new();
    let working = async {
        let mut running =
            std::pin::pin!(server.run_on_workers(listener, workers, shutdown.clone()));
        tokio::select! {
            ended = &mut running => ended.map_err(|error| failed("serve", &error))?,
            () = asked.cancelled() => {
                let stop = stop(&server, &engine, config, &shutdown);
                let (ended, stopped) = tokio::join!(running, stop);
                ended.map_err(|error| failed("serve", &error))?;
                stopped?;
            }
        }
        shutdown.cancel();
        quiet.cancel();
        let _ = tokio::join!(maintained, swept);
        if let Some(delivered) = delivered {
            let _ = delivered.await;
        }
        silent.cancel();
        if let Some(carried) = carried {
            let _ = tokio::time::timeout(LAST_SPANS, carried).await;
        }
        store.close().await.map_err(not_closed)
    };
    tokio::select! {
        worked = working => worked?,
        () = watch(&store) => {}
        () = twice(&mut signals, &asked) => {
            tracing::warn!("stopped at once");
            std::process::exit(130);
        }
    }
    tracing::info!("stopped");
    Ok(())
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

/// Passes the first signal on, and is over with the second.
async fn twice(signals: &mut Signals, asked: &CancellationToken) {
    signals.next().await;
    tracing::info!("stopping; a second signal stops at once");
    supervisor::tell(Word::Stopping);
    asked.cancel();
    signals.next().await;
}

/// Gives the supervisor signs of life, if it waits for them; never over.
async fn watch(store: &Arc<dyn Store>) {
    match supervisor::patience() {
        None => std::future::pending().await,
        Some(patience) => {
            let answers = || async { store.ping().await.is_ok() };
            supervisor::watch(patience, answers, || supervisor::tell(Word::Alive)).await;
        }
    }
}

/// Readiness fails, and others get time to notice; then streams end, no run begins, and those under
/// way get their time; then nobody is let in any more.
async fn stop(
    server: &Server,
    engine: &Engine,
    config: &Config,
    shutdown: &CancellationToken,
) -> Outcome {
    server.drain();
    tokio::time::sleep(config.server.drain_delay()).await;
    server.end_streams();
    let limit = Duration::from_secs(config.server.drain_seconds);
    let stopped = engine.stop_runs(limit).await;
    shutdown.cancel();
    stopped.map_err(not_closed)
}

fn not_closed(error: StoreError) -> Failure {
    Failure::internal(format!("failed to close the store: {error}"))
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

async fn bind(config: &Config) -> Outcome<TcpListener> {
    let listen = &config.server.listen;
    TcpListener::bind(listen).await.map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                "another program has the port; try --listen 127.0.0.1:0"
            }
            _ => "an address of this machine and a free port, such as --listen 127.0.0.1:8080",
        };
        failed(&format!("listen on {listen}"), &error).hint(hint)
    })
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
