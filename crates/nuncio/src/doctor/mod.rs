//! `nuncio doctor`: what is wrong with a server, here and as its callers meet it.
//!
//! `local` looks at the configuration and at what it names on this machine; `outside` looks at a
//! server from outside: its health, and by `card` and `interfaces` each agent. Nothing is changed,
//! and agents are asked only for a task that does not exist. `report` gathers and prints.

mod card;
mod files;
mod interfaces;
mod local;
mod outside;
mod report;
mod upgrade;

use std::time::Duration;

use nuncio_egress::Timeouts;
use nuncio_protocol::signing::KeySet;

use crate::arguments::DoctorArguments;
use crate::client::{ClientOptions, Groundwork, block_on, read_keys, said};
use crate::outcome::{Failure, Outcome};
use crate::surroundings::Surroundings;

pub(crate) use upgrade::upgrade_check;

use outside::Visit;
use report::Report;

/// How long one exchange may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Examines what is named and prints what was found; an error among it is exit code 1.
pub(crate) fn run(arguments: &DoctorArguments, around: &Surroundings) -> Outcome {
    let options = ClientOptions {
        output: arguments.output,
        bearer: arguments.bearer.clone(),
        api_key: arguments.api_key.clone(),
        debug: arguments.debug,
        ..ClientOptions::default()
    };
    let ground = Groundwork::new(&options, said([]), around)?;
    let keys = read_keys(&arguments.keys)?;
    let mut report = Report::default();
    block_on(async {
        match &arguments.url {
            Some(url) => {
                let visit = Visit::new(&ground, &keys, None);
                visit.agent(&mut report, url).await;
                visit.health_beside(&mut report, url).await;
            }
            None => whole(&mut report, arguments, &ground, keys, around).await,
        }
        Ok(())
    })?;
    report.print(ground.printer)?;
    if report.has_errors() {
        Err(Failure::Shown)
    } else {
        Ok(())
    }
}

/// A server by its configuration, then from outside if it runs.
async fn whole(
    report: &mut Report,
    arguments: &DoctorArguments,
    ground: &Groundwork,
    mut keys: KeySet,
    around: &Surroundings,
) {
    let file = arguments.config.as_deref();
    let Some(local) = local::examine(report, file, around).await else {
        return;
    };
    keys.extend(local.keys);
    let public = local.config.server.public_url.as_deref();
    let public = public.map(|url| url.trim_end_matches('/'));
    let visit = Visit::new(ground, &keys, public);
    if let Some(base) = visit.entrance(report, local.running.as_deref()).await {
        for address in outside::agents(&local.config, &base) {
            visit.agent(report, &address).await;
        }
    }
}

fn limits() -> Timeouts {
    Timeouts::total(TIMEOUT)
}
