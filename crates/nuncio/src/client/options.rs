//! The flags that the client's commands share.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};

/// The form of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// One `Label: value` per line.
    #[default]
    Text,
    /// The protocol's own JSON.
    Json,
}

/// Whom to talk to and how. Each can also be said by `A2ACLI_…` variables and `.env` files.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Connection and output")]
pub(crate) struct ClientOptions {
    /// The agent: a host, the URL of its card, or a card in a file
    #[arg(short, long, value_name = "CARD")]
    pub(crate) agent_card: Option<String>,
    /// The form of the output [default: text]
    #[arg(short, long, value_name = "FORMAT", value_enum)]
    pub(crate) output: Option<OutputFormat>,
    /// Print events as they come; JSON Lines with `-o json`
    #[arg(long)]
    pub(crate) stream: bool,
    /// Show all that was exchanged, part by part [default: concise]
    #[arg(long)]
    pub(crate) verbose: bool,
    /// A token for the agent; other users of this machine can see it here, A2ACLI_BEARER hides it
    #[arg(long, value_name = "TOKEN")]
    pub(crate) bearer: Option<String>,
    /// A key for the agent; other users of this machine can see it here, A2ACLI_API_KEY hides it
    #[arg(long, value_name = "KEY")]
    pub(crate) api_key: Option<String>,
    /// A service parameter, sent as a header of each request; may be repeated
    #[arg(long, value_name = "NAME:VALUE")]
    pub(crate) svc_param: Vec<String>,
    /// Preferred binding: JSONRPC, HTTP+JSON or GRPC; may be repeated, best first [default: the card's order]
    #[arg(long, value_name = "BINDING")]
    pub(crate) transport: Vec<String>,
    /// The protocol version, 1.0 or 0.3 [default: the highest both sides speak, at least 1.0]
    #[arg(long, value_name = "VERSION")]
    pub(crate) a2a_version: Option<String>,
    /// Do not check TLS certificates: anybody on the way can read along; for development only [default: check]
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Log to stderr what is done and what goes over the wire, without secrets
    #[arg(long)]
    pub(crate) debug: bool,
    /// Read settings from this `.env` file instead of the nearest one
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
}

/// Which server to administer and how.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Connection and output")]
pub(crate) struct ServerOptions {
    /// The server, as A2ACLI_SERVER says it too [default: http://127.0.0.1:8080]
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// A key with `admin = true`; other users of this machine can see it here, A2ACLI_API_KEY hides it
    #[arg(long, value_name = "KEY")]
    pub(crate) api_key: Option<String>,
    /// The form of the output [default: text]
    #[arg(short, long, value_name = "FORMAT", value_enum)]
    pub(crate) output: Option<OutputFormat>,
    /// Do not check TLS certificates: anybody on the way can read along; for development only [default: check]
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Log to stderr what is done and what goes over the wire, without secrets
    #[arg(long)]
    pub(crate) debug: bool,
    /// Read settings from this `.env` file instead of the nearest one
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<String>,
}

impl ServerOptions {
    /// The same in the words of the client, with the server apart.
    pub(crate) fn split(&self) -> (ClientOptions, Layer) {
        let options = ClientOptions {
            api_key: self.api_key.clone(),
            output: self.output,
            insecure: self.insecure,
            debug: self.debug,
            config: self.config.clone(),
            ..ClientOptions::default()
        };
        (options, said([("server", self.server.clone())]))
    }
}

/// How long to wait.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Waiting")]
pub(crate) struct FollowOptions {
    /// How long to wait before giving up; the task goes on [default: no limit]
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<String>,
    /// How often to ask where the agent does not stream [default: 2s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) poll_interval: Option<String>,
}

/// Settings by the names of their flags; lists have a line per entry.
pub(crate) type Layer = BTreeMap<&'static str, String>;

impl ClientOptions {
    pub(crate) fn layer(&self) -> Layer {
        let texts = [
            ("agent-card", self.agent_card.clone()),
            (
                "output",
                self.output.map(|format| match format {
                    OutputFormat::Text => "text".to_owned(),
                    OutputFormat::Json => "json".to_owned(),
                }),
            ),
            ("bearer", self.bearer.clone()),
            ("api-key", self.api_key.clone()),
            ("svc-param", list(&self.svc_param)),
            ("transport", list(&self.transport)),
            ("a2a-version", self.a2a_version.clone()),
            ("verbose", flag(self.verbose)),
            ("insecure", flag(self.insecure)),
            ("debug", flag(self.debug)),
        ];
        said(texts)
    }
}

impl FollowOptions {
    pub(crate) fn layer(&self) -> Layer {
        said([
            ("timeout", self.timeout.clone()),
            ("poll-interval", self.poll_interval.clone()),
        ])
    }
}

/// A layer of what was said.
pub(crate) fn said<const N: usize>(texts: [(&'static str, Option<String>); N]) -> Layer {
    texts
        .into_iter()
        .filter_map(|(name, text)| Some((name, text?)))
        .collect()
}

/// A flag that was given, as a setting.
pub(crate) fn flag(given: bool) -> Option<String> {
    given.then(|| "true".to_owned())
}

fn list(entries: &[String]) -> Option<String> {
    (!entries.is_empty()).then(|| entries.join("\n"))
}
