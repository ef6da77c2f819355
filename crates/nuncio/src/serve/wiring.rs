//! A server from its start to its orderly end.

use std::sync::Arc;
use std::time::Duration;

use nuncio_engine::{Agent, Engine};
use nuncio_server::{Server, Workers};
use nuncio_store::{Store, StoreError};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::assembly::{Assembly, Begun, Parts};
use super::supervisor::{self, Word};
use super::{announce, failed};
use crate::config::Config;
use crate::outcome::{Failure, Outcome, print};
use crate::signals::Signals;
use crate::surroundings::Surroundings;

/// Serves until a signal comes, then ends in order: no new work, runs get their time, streams
/// close, what still runs is left to be recovered. A second signal ends the process at once.
pub(crate) async fn serve(
    config: &Config,
    around: &Surroundings,
    workers: &Workers,
    own: Vec<Arc<dyn Agent>>,
) -> Outcome {
    let mut signals = Signals::listen().map_err(|error| failed("listen to signals", &error))?;
    let listener = bind(config).await?;
    let address = listener
        .local_addr()
        .map_err(|error| failed("listen", &error))?;
    let base = announce::base_url(address, config.server.tls.is_some());
    let assembly = Assembly::of(config, around, &base, own).await?;
    let agents = assembly.server.switchboard().ids();
    let Begun { parts, background } = assembly.begin(config);
    let Parts {
        store,
        engine,
        server,
    } = &parts;
    print(&announce::lines(
        &base,
        &agents,
        !config.auth.takes_anonymous(),
    ))?;
    tracing::info!(server.address = %address, "serving");
    supervisor::tell(Word::Ready);

    let (asked, shutdown) = (CancellationToken::new(), CancellationToken::new());
    let working = async {
        let mut running =
            std::pin::pin!(server.run_on_workers(listener, workers, shutdown.clone()));
        tokio::select! {
            ended = &mut running => ended.map_err(|error| failed("serve", &error))?,
            () = asked.cancelled() => {
                let stop = stop(server, engine, config, &shutdown);
                let (ended, stopped) = tokio::join!(running, stop);
                ended.map_err(|error| failed("serve", &error))?;
                stopped?;
            }
        }
        background.end().await;
        store.close().await.map_err(not_closed)
    };
    tokio::select! {
        worked = working => worked?,
        () = watch(store) => {}
        () = twice(&mut signals, &asked) => {
            tracing::warn!("stopped at once");
            std::process::exit(130);
        }
    }
    tracing::info!("stopped");
    Ok(())
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

pub(super) fn not_closed(error: StoreError) -> Failure {
    Failure::internal(format!("failed to close the store: {error}"))
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
