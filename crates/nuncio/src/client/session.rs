//! One command's connection to its agent: the card, the choice of interface, the credentials.

use std::time::Duration;

use nuncio_client::{Backoff, Client, ClientBuilder, FollowPolicy, Timeouts, discover};
use nuncio_egress::{Egress, EgressPolicy};
use nuncio_protocol::{A2aError, Version};
use url::Url;

use super::credentials::{Attachments, accepted, is_extensions, parameters};
use super::debug::Debug;
use super::escape::escape;
use super::failure;
use super::found::{Found, local, make_absolute, origins, prefer, read_file};
use super::hints::Hints;
use super::options::{ClientOptions, Layer};
use super::printer::Printer;
use super::settings::{Settings, Source};
use crate::outcome::{Failure, Outcome, warn};
use crate::surroundings::Surroundings;

/// What a command works with.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) settings: Settings,
    pub(crate) hints: Hints,
    pub(crate) printer: Printer,
    with_credentials: bool,
}

/// What a command knows before it has asked anybody.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) settings: Settings,
    debug: Debug,
    pub(crate) hints: Hints,
    pub(crate) printer: Printer,
    egress: Egress,
    reference: String,
}

impl Prepared {
    /// Reads the settings and makes ready to go out.
    ///
    /// # Errors
    /// Settings that make no sense, or no agent to talk to.
    pub(crate) fn new(
        options: &ClientOptions,
        more: Layer,
        around: &Surroundings,
    ) -> Outcome<Self> {
        let settings = Settings::gather(options, more, around)?;
        let printer = Printer::new(
            settings.output()?,
            options.stream,
            settings.flag("verbose")?,
        );
        check(&settings)?;
        let Some((reference, source)) = settings.find("agent-card") else {
            return Err(Failure::usage("no agent is named")
                .hint("say --agent-card http://127.0.0.1:8080, or set A2ACLI_AGENT_CARD"));
        };
        let reference = reference.to_owned();
        // A command to copy names the agent only if this one did.
        let hints = Hints::new((*source == Source::Flag).then(|| reference.clone()));
        let debug = Debug::new(settings.flag("debug")?, secrets(&settings)?);
        debug.listen();
        Ok(Self {
            egress: egress(&settings)?,
            settings,
            debug,
            hints,
            printer,
            reference,
        })
    }

    /// Finds the card.
    ///
    /// # Errors
    /// No card, no connection, something else instead of a card.
    pub(crate) async fn card(&self) -> Outcome<Found> {
        let found = self.find(&self.reference).await?;
        for warning in &found.warnings {
            warn(&format!("warning: {}\n", escape(warning)))?;
        }
        Ok(found)
    }

    /// Finds the card of the agent that the settings name, and says nothing about it.
    ///
    /// # Errors
    /// As [`Self::card`].
    pub(crate) async fn bare_card(&self) -> Outcome<Found> {
        self.find(&self.reference).await
    }

    /// Finds the card of any agent, and says nothing about it.
    ///
    /// # Errors
    /// As [`Self::card`].
    pub(crate) async fn find(&self, reference: &str) -> Outcome<Found> {
        let found = match local(reference) {
            Some(path) => read_file(path)?,
            None => {
                let found = discover(&self.egress, reference).await;
                let found = found.map_err(|error| failure::of_discovery(&error))?;
                let (card, raw, warnings) = (found.card, found.raw, found.warnings);
                Found {
                    card,
                    raw,
                    url: Some(found.url),
                    warnings,
                }
            }
        };
        let place = found.url.as_ref().map_or(reference, Url::as_str);
        self.debug.note(&format!(
            "the card of \"{}\" is at {place}",
            found.card.name
        ));
        Ok(found)
    }

    /// Finds the card and connects to the agent.
    ///
    /// # Errors
    /// As [`Self::card`]; no interface that can be used, credentials that fit no scheme.
    pub(crate) async fn connect(self) -> Outcome<Session> {
        let found = self.card().await?;
        self.connect_to(found)
    }

    /// Connects to the agent of a card that has been found.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub(crate) fn connect_to(self, mut found: Found) -> Outcome<Session> {
        let version = version(&self.settings)?;
        prefer(&mut found.card, &self.settings.transports()?, version);
        if let Some(base) = &found.url {
            make_absolute(&mut found.card, base);
        }
        let attachments = Attachments::new(&self.settings, &found.card)?;
        let with_credentials = attachments.prove_something();
        let builder = ClientBuilder::new(self.egress)
            .versions([version])
            .timeouts(unhurried())
            .follow(follow_policy(self.settings.duration("poll-interval")?));
        let builder = match &found.url {
            Some(url) => builder.found_at(url.clone()),
            None => builder,
        };
        let builder = attachments.attach(builder, &origins(&found));
        let client = builder.build(found.card).map_err(failure::of_connecting)?;
        let interface = client.interface();
        self.debug.note(&format!(
            "talking {} {} to {}",
            interface.protocol_binding, interface.protocol_version, interface.url
        ));
        if with_credentials && self.settings.flag("insecure")? {
            let url = escape(&interface.url);
            warn(&format!(
                "warning: SECURITY: a credential is sent to {url} without knowing who is there\n"
            ))?;
        }
        Ok(Session {
            client,
            settings: self.settings,
            hints: self.hints,
            printer: self.printer,
            with_credentials,
        })
    }
}

impl Session {
    /// Turns an error of a call into one of ours, with a hint where we know one.
    pub(crate) fn failed(&self, doing: &str, error: &A2aError) -> Failure {
        let failure = failure::of_call(doing, error, self.with_credentials);
        let accepted = accepted(self.client.card());
        match &failure {
            Failure::Told(told) if told.code.exit() == 4 && !accepted.is_empty() => {
                failure.hint(format!("the agent takes {}", accepted.join(", or ")))
            }
            _ => failure,
        }
    }
}

/// Finds mistakes in settings before anybody is asked anything.
pub(super) fn check(settings: &Settings) -> Outcome {
    settings.transports()?;
    settings.flag("insecure")?;
    settings.duration("timeout")?;
    settings.duration("poll-interval")?;
    parameters(settings)?;
    version(settings).map(|_| ())
}

/// The version to speak. One before 1.0 is spoken if it is asked for, and never otherwise.
fn version(settings: &Settings) -> Outcome<Version> {
    let Some(asked) = settings.text("a2a-version") else {
        return Ok(Version::V1_0);
    };
    Version::parse(&asked).map_err(|error| {
        let spoken: Vec<&str> = Version::ALL
            .iter()
            .map(|version| version.as_str())
            .collect();
        Failure::usage(format!("failed to use --a2a-version: {error}"))
            .hint(format!("spoken here: {}", spoken.join(", ")))
    })
}

/// Blocking sends are ended by `--timeout`, not by a silence.
fn unhurried() -> Timeouts {
    Timeouts {
        first_byte: None,
        ..Timeouts::default()
    }
}

const POLL: Duration = Duration::from_secs(2);
const FIRST_POLL: Duration = Duration::from_millis(200);

fn follow_policy(interval: Option<Duration>) -> FollowPolicy {
    // Zero would be a busy loop.
    let cap = interval.unwrap_or(POLL).max(Duration::from_millis(50));
    FollowPolicy {
        poll: Backoff {
            first: FIRST_POLL.min(cap),
            factor: 1.5,
            cap,
        },
        max_quiet: Duration::MAX,
        ..FollowPolicy::default()
    }
}

/// The way out; with `--insecure` any certificate will do, and that is never done silently.
pub(super) fn egress(settings: &Settings) -> Outcome<Egress> {
    let mut policy = EgressPolicy::open();
    policy.accept_any_certificate = settings.flag("insecure")?;
    if let Some((_, source)) = settings
        .find("insecure")
        .filter(|_| policy.accept_any_certificate)
    {
        let said = escape(&source.of("insecure"));
        warn(&format!(
            "warning: SECURITY: {said} turns the check of TLS certificates off; \
             anybody on the way can read and change what is exchanged\n"
        ))?;
    }
    Egress::new(policy).map_err(|error| failure::of_egress(&error))
}

/// What no diagnostics may show.
pub(super) fn secrets(settings: &Settings) -> Outcome<Vec<String>> {
    let given = ["bearer", "api-key"].into_iter();
    let given = given.filter_map(|name| settings.text(name));
    let values = parameters(settings)?.into_iter();
    let values = values.filter(|(name, _)| !is_extensions(name));
    let values = values.flat_map(|(_, value)| {
        // Of `Bearer abc` the token alone is as secret as the whole.
        let token = value.split(' ').next_back().unwrap_or_default().to_owned();
        [value, token]
    });
    Ok(given.chain(values).collect())
}
