//! The command line, as clap reads it. What a flag means is said where it is used.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use crate::client::{
    ClientOptions, FollowOptions, OutputFormat, PartFlags, ServerOptions, StateName,
};
use crate::config::LogFormat;

const TEMPLATE: &str =
    "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// Serves A2A agents that survive restarts, and calls A2A agents.
#[derive(Debug, Parser)]
#[command(
    name = "nuncio",
    version,
    color = clap::ColorChoice::Never,
    help_template = TEMPLATE,
    disable_version_flag = true,
    arg_required_else_help = true,
    before_help = "Examples:
  nuncio serve
  nuncio send --agent-card http://127.0.0.1:8080 \"hello\"
  nuncio card get --agent-card https://agents.example.com"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Print the version and exit
    #[arg(short = 'v', long, action = ArgAction::Version)]
    version: Option<bool>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve agents: an echo agent without configuration, yours with --config
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio serve
  nuncio serve --listen 127.0.0.1:0 --data /var/lib/nuncio
  nuncio serve --config examples/damaged-order.toml")]
    Serve(ServeArguments),
    /// Watch two services work on a damaged order: models, tools, questions, a cancel, the call tree
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio demo
  OPENAI_API_KEY=… nuncio demo --provider openai --model gpt-5-mini
  nuncio demo --provider ollama --model qwen3 --base-url http://127.0.0.1:11434/v1/")]
    Demo(DemoArguments),
    /// Send a message to an agent and print what comes of it
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio send -a http://127.0.0.1:8080 \"hello\"
  nuncio send -a http://127.0.0.1:8080 --task-id ID \"blue\"
  nuncio send -a agents.example.com --text \"see the photo\" --file photo.jpg -o json --stream
  git diff | nuncio send -a agents.example.com -")]
    Send(SendArguments),
    /// Look at agents' cards, sign and verify them
    #[command(subcommand)]
    Card(CardCommand),
    /// Read, list, cancel and follow tasks
    #[command(subcommand)]
    Task(TaskCommand),
    /// List, add and remove the agents of a running server
    #[command(subcommand)]
    Agents(AgentsCommand),
    /// Look after the webhooks of a running server, and receive them while developing
    #[command(subcommand)]
    Push(PushCommand),
    /// Look at what a webhook has received
    #[command(subcommand)]
    Webhook(WebhookCommand),
    /// Find what is wrong with a server or an agent: exit code 1 if there is an error
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio doctor --config nuncio.toml
  nuncio doctor --url https://agents.example.com --keys card-key.jwks.json")]
    Doctor(DoctorArguments),
    /// Look at configurations: `show` the client's, check the server's
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Look after a server's database
    #[command(subcommand)]
    Db(DbCommand),
    /// Look before a newer program takes over a server's data
    #[command(subcommand)]
    Upgrade(UpgradeCommand),
    /// Make keys: for callers, and for signing cards and webhooks
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Print a completion script for a shell
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio completion bash > /etc/bash_completion.d/nuncio")]
    Completion(CompletionArguments),
    /// Print the version and the protocol versions spoken
    Version(VersionArguments),
}

#[derive(Debug, Default, Args)]
pub(crate) struct DemoArguments {
    /// Whose model speaks, such as openai, anthropic, gemini or ollama; a scripted one if absent. Its
    /// key is taken from PROVIDER_API_KEY
    #[arg(long, value_name = "NAME", requires = "model")]
    pub(crate) provider: Option<String>,
    /// Which model speaks
    #[arg(long, value_name = "NAME", requires = "provider")]
    pub(crate) model: Option<String>,
    /// Where the provider is, if not at its usual place
    #[arg(long, value_name = "URL", requires = "provider")]
    pub(crate) base_url: Option<String>,
    /// The ports of support and fulfilment; free ones if absent
    #[arg(long, value_name = "PORT", num_args = 2, value_names = ["SUPPORT", "FULFILMENT"])]
    pub(crate) ports: Vec<u16>,
}

#[derive(Debug, Default, Args)]
pub(crate) struct ServeArguments {
    /// The TOML file to read; without it everything has its default
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// The folder for the database and secrets [default: nuncio-data]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: Option<PathBuf>,
    /// Where tasks are kept: `sqlite:PATH`, `postgres://…` or `memory:` [default: SQLite in the folder]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// The address under which callers reach this server, if it is another one
    #[arg(long, value_name = "URL")]
    pub(crate) public_url: Option<String>,
    /// Take calls from the network without any key
    #[arg(long)]
    pub(crate) insecure: bool,
    /// What is logged: error, warn, info, debug, trace, or per module [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,
    /// The form of log lines [default: pretty]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
}

#[derive(Debug, Args)]
pub(crate) struct SendArguments {
    #[command(flatten)]
    pub(crate) parts: PartFlags,
    /// Group this turn with an existing interaction
    #[arg(long, value_name = "ID", visible_alias = "context")]
    pub(crate) context_id: Option<String>,
    /// Continue a task, for instance one that waits for input
    #[arg(long, value_name = "ID", visible_alias = "task")]
    pub(crate) task_id: Option<String>,
    /// Metadata of the request, a JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) metadata: Option<String>,
    /// The id of the message, to repeat a send that may have arrived [default: a fresh one]
    #[arg(long, value_name = "ID")]
    pub(crate) message_id: Option<String>,
    /// Do not wait: print the task's identifiers at once
    #[arg(long = "async", visible_aliases = ["return-immediately", "no-wait"], conflicts_with_all = ["wait", "stream"])]
    pub(crate) asynchronous: bool,
    /// Wait until the task ends or asks something; this is the default
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) client: ClientOptions,
    #[command(flatten)]
    pub(crate) follow: FollowOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CardCommand {
    /// Fetch an agent's card and show it
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio card get -a http://127.0.0.1:8080
  nuncio card get -a ./agent-card.json --validate")]
    Get(CardGetArguments),
    /// Sign a card in a file
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio keys create --card card-key.pem
  nuncio card sign agent-card.json --key card-key.pem --out signed.json")]
    Sign(CardSignArguments),
    /// Verify a card's signatures: exit code 0 if one is by these keys, 1 if none is
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio card verify http://127.0.0.1:8080 --keys card-key.jwks.json
  nuncio card verify signed.json --keys card-key.jwks.json -o json")]
    Verify(CardVerifyArguments),
    /// List what is wrong with a card: exit code 1 if there is an error
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio card lint http://127.0.0.1:8080
  nuncio card lint agent-card.json -o json")]
    Lint(CardLintArguments),
    /// Compare what two cards say: exit code 0 if it is the same, 1 if not
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio card diff agent-card.json https://agents.example.com")]
    Diff(CardDiffArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CardSignArguments {
    /// The card, a JSON file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The private key, PEM (PKCS#8) or a JWK, P-256 or Ed25519
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// The name of the key in the signature [default: the key's thumbprint]
    #[arg(long, value_name = "ID")]
    pub(crate) kid: Option<String>,
    /// Sign also the form that the official SDKs verify, where it is another one
    #[arg(long)]
    pub(crate) sdk: bool,
    /// Write the signed card to this file, which may be the same one [default: print it]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// The form of the output [default: text]
    #[arg(short, long, value_name = "FORMAT", value_enum)]
    pub(crate) output: Option<OutputFormat>,
}

#[derive(Debug, Args)]
pub(crate) struct CardVerifyArguments {
    /// The agent: a host, the URL of its card, or a card in a file [default: --agent-card]
    #[arg(value_name = "CARD", conflicts_with = "agent_card")]
    pub(crate) card: Option<String>,
    /// The public keys to believe: PEM, a JWK or a JWKS; may be repeated
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) keys: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) client: ClientOptions,
}

#[derive(Debug, Args)]
pub(crate) struct CardLintArguments {
    /// The agent: a host, the URL of its card, or a card in a file [default: --agent-card]
    #[arg(value_name = "CARD", conflicts_with = "agent_card")]
    pub(crate) card: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientOptions,
}

#[derive(Debug, Args)]
pub(crate) struct CardDiffArguments {
    /// The one card: a host, the URL of a card, or a card in a file
    #[arg(value_name = "BEFORE", conflicts_with = "agent_card")]
    pub(crate) before: String,
    /// The other card
    #[arg(value_name = "AFTER")]
    pub(crate) after: String,
    #[command(flatten)]
    pub(crate) client: ClientOptions,
}

#[derive(Debug, Args)]
pub(crate) struct CardGetArguments {
    /// Check the card against the protocol's rules; exit code 1 if it breaks one
    #[arg(long)]
    pub(crate) validate: bool,
    /// Ask for the card that authenticated callers see
    #[arg(long)]
    pub(crate) extended: bool,
    #[command(flatten)]
    pub(crate) client: ClientOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Show a task: where it stands and what it has produced
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio task get -a http://127.0.0.1:8080 TASK
  nuncio task get -a http://127.0.0.1:8080 --wait --timeout 30s TASK")]
    Get(TaskGetArguments),
    /// List your tasks, newest first
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio task list -a http://127.0.0.1:8080 --status working")]
    List(TaskListArguments),
    /// Cancel a task
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio task cancel -a http://127.0.0.1:8080 TASK")]
    Cancel(TaskCancelArguments),
    /// Follow a task until it ends or asks something
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio task subscribe -a http://127.0.0.1:8080 --stream TASK")]
    Subscribe(TaskSubscribeArguments),
    /// Show what the runs of a task have done: agents, models, tools and calls of other agents
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio task trace -a http://127.0.0.1:8080 TASK
  nuncio task trace -a http://127.0.0.1:8080 --content -o json TASK")]
    Trace(TaskTraceArguments),
    /// Make a new task that repeats one up to a step, with that step changed; what follows happens
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio task rerun -a http://127.0.0.1:8080 TASK --node NODE --input '{\"order\": 8}'
  nuncio task rerun -a http://127.0.0.1:8080 TASK --node NODE --result '\"out of stock\"'")]
    Rerun(TaskRerunArguments),
    /// Write all tasks of a store as JSON lines, with logs, keys and webhooks
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio task export nuncio-data > tasks.jsonl
  nuncio task export backup.db --out tasks.jsonl")]
    Export(TaskExportArguments),
    /// Store the tasks that `task export` has written; again if need be
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio task import tasks.jsonl nuncio-data
  nuncio task import - sqlite:/var/lib/nuncio/nuncio.db < tasks.jsonl")]
    Import(TaskImportArguments),
}

#[derive(Debug, Args)]
pub(crate) struct TaskTraceArguments {
    /// The task's id
    #[arg(value_name = "TASK")]
    pub(crate) task: String,
    /// Show what went into each step and what came out
    #[arg(long)]
    pub(crate) content: bool,
    #[command(flatten)]
    pub(crate) client: ClientOptions,
}

#[derive(Debug, Args)]
pub(crate) struct TaskRerunArguments {
    /// The id of the task to repeat
    #[arg(value_name = "TASK")]
    pub(crate) task: String,
    /// The call of a model or a tool to change, as `task trace` names it; those before it are not made
    #[arg(long, value_name = "ID")]
    pub(crate) node: String,
    /// Make the call with this: the arguments of a tool, or a question to a model as the tree has it
    #[arg(long, value_name = "JSON", required_unless_present = "result")]
    pub(crate) input: Option<String>,
    /// Do not make the call: this came out of it
    #[arg(long, value_name = "JSON", conflicts_with = "input")]
    pub(crate) result: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientOptions,
    #[command(flatten)]
    pub(crate) follow: FollowOptions,
}

#[derive(Debug, Args)]
pub(crate) struct TaskExportArguments {
    /// The store: a URL as in the configuration, a database file, or a data folder
    #[arg(value_name = "STORE")]
    pub(crate) store: String,
    /// The new file to write [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write the secrets of webhooks too; whoever reads them can call in your name
    #[arg(long)]
    pub(crate) with_secrets: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TaskImportArguments {
    /// What was written; `-` reads stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The store: a URL as in the configuration, a database file, or a data folder
    #[arg(value_name = "STORE")]
    pub(crate) store: String,
    /// The form of the output [default: text]
    #[arg(short, long, value_name = "FORMAT", value_enum)]
    pub(crate) output: Option<OutputFormat>,
}

#[derive(Debug, Args)]
pub(crate) struct TaskGetArguments {
    /// The task's id
    #[arg(value_name = "TASK")]
    pub(crate) task: String,
    /// How many messages of the history to show [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) history: Option<i32>,
    /// Ask again and again until the task ends or asks something
    #[arg(long, visible_alias = "watch")]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) client: ClientOptions,
    #[command(flatten)]
    pub(crate) follow: FollowOptions,
}

#[derive(Debug, Args)]
pub(crate) struct TaskListArguments {
    /// Only tasks of this conversation
    #[arg(long, value_name = "ID", visible_alias = "context")]
    pub(crate) context_id: Option<String>,
    /// Only tasks in this state
    #[arg(long, value_name = "STATE")]
    pub(crate) status: Option<StateName>,
    /// Tasks per page, 1 to 100 [default: 50]
    #[arg(long, value_name = "N")]
    pub(crate) page_size: Option<i32>,
    /// Where to go on: the token that the page before ended with
    #[arg(long, value_name = "TOKEN", allow_hyphen_values = true)]
    pub(crate) page_token: Option<String>,
    /// How many messages of the history to show [default: none]
    #[arg(long, value_name = "N")]
    pub(crate) history: Option<i32>,
    /// Only tasks whose state has changed since then, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Show what the tasks have produced
    #[arg(long)]
    pub(crate) include_artifacts: bool,
    #[command(flatten)]
    pub(crate) client: ClientOptions,
}

#[derive(Debug, Args)]
pub(crate) struct TaskCancelArguments {
    /// The task's id
    #[arg(value_name = "TASK")]
    pub(crate) task: String,
    /// Metadata of the request, a JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) metadata: Option<String>,
    #[command(flatten)]
    pub(crate) client: ClientOptions,
}

#[derive(Debug, Args)]
pub(crate) struct TaskSubscribeArguments {
    /// The task's id
    #[arg(value_name = "TASK")]
    pub(crate) task: String,
    #[command(flatten)]
    pub(crate) client: ClientOptions,
    #[command(flatten)]
    pub(crate) follow: FollowOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// List the agents, those of the configuration and those that were added
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio agents list
  nuncio agents list --server https://agents.example.com -o json")]
    List(AgentsListArguments),
    /// Show an agent with its configuration
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio agents get echo")]
    Get(AgentsNameArguments),
    /// Add an agent, or change one that was added
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio agents add order-desk.toml
  nuncio agents add order-desk.json --replace")]
    Add(AgentsAddArguments),
    /// Remove an agent that was added; its tasks stay
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio agents remove order-desk")]
    Remove(AgentsNameArguments),
}

#[derive(Debug, Args)]
pub(crate) struct AgentsListArguments {
    #[command(flatten)]
    pub(crate) server: ServerOptions,
}

#[derive(Debug, Args)]
pub(crate) struct AgentsNameArguments {
    /// The agent's id
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) server: ServerOptions,
}

#[derive(Debug, Args)]
pub(crate) struct AgentsAddArguments {
    /// The agent: TOML as in a configuration with one agent, or JSON; `-` reads stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Replace the agent if it was added before
    #[arg(long)]
    pub(crate) replace: bool,
    #[command(flatten)]
    pub(crate) server: ServerOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PushCommand {
    /// List webhooks and how their delivery stands
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio push list
  nuncio push list --trouble -o json")]
    List(PushListArguments),
    /// Show a webhook with its newest calls and its dead letters
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio push show TASK CONFIG")]
    Show(PushNameArguments),
    /// Deliver dead letters of a webhook again; enables it if it was disabled
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio push redeliver TASK CONFIG
  nuncio push redeliver TASK CONFIG --position 3")]
    Redeliver(PushRedeliverArguments),
    /// Deliver again what was given up since a time, of all webhooks
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio push recover --since 2h
  nuncio push recover --since 2026-01-31T12:00:00Z")]
    Recover(PushRecoverArguments),
    /// Call a webhook with its task as it stands; changes nothing: exit code 1 if it is not taken
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio push test TASK CONFIG")]
    Test(PushNameArguments),
    /// Receive notifications on this machine, print them, and pass them on
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio push listen
  nuncio push listen --listen 127.0.0.1:9000 --forward-to http://127.0.0.1:3000/hook
  nuncio push listen --secret-file webhook-secret.txt -o json")]
    Listen(PushListenArguments),
}

#[derive(Debug, Args)]
pub(crate) struct PushListArguments {
    /// Only webhooks of this task
    #[arg(long, value_name = "ID")]
    pub(crate) task: Option<String>,
    /// Only those that fail, are disabled, or have dead letters
    #[arg(long)]
    pub(crate) trouble: bool,
    /// Webhooks at most [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    #[command(flatten)]
    pub(crate) server: ServerOptions,
}

#[derive(Debug, Args)]
pub(crate) struct PushNameArguments {
    /// The task's id
    #[arg(value_name = "TASK")]
    pub(crate) task: String,
    /// The id of the webhook within its task
    #[arg(value_name = "CONFIG")]
    pub(crate) config_id: String,
    #[command(flatten)]
    pub(crate) server: ServerOptions,
}

#[derive(Debug, Args)]
pub(crate) struct PushRedeliverArguments {
    #[command(flatten)]
    pub(crate) name: PushNameArguments,
    /// Only the dead letter of this position [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) position: Option<u64>,
    /// Only what was given up since then: a time, or how long ago, such as 2h
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PushRecoverArguments {
    /// What was given up since then: a time, or how long ago, such as 2h
    #[arg(long, value_name = "TIME")]
    pub(crate) since: String,
    #[command(flatten)]
    pub(crate) server: ServerOptions,
}

#[derive(Debug, Args)]
pub(crate) struct PushListenArguments {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: std::net::SocketAddr,
    /// Pass each notification on to this address, with its headers
    #[arg(long, value_name = "URL")]
    pub(crate) forward_to: Option<String>,
    #[command(flatten)]
    pub(crate) trust: TrustOptions,
    /// The form of the output
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub(crate) output: OutputFormat,
}

/// Whose signatures are believed.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TrustOptions {
    /// A file with the secrets (`whsec_…`) that sender and receiver share
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// The sender's public keys, as its /.well-known/jwks.json has them; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WebhookCommand {
    /// Verify the signature of a call: exit code 0 if it is good, 1 if not
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio webhook verify --headers headers.txt --body body.json --secret-file webhook-secret.txt
  nuncio webhook verify --keys jwks.json --at 2026-01-31T12:00:00Z < request.txt")]
    Verify(WebhookVerifyArguments),
}

#[derive(Debug, Args)]
pub(crate) struct WebhookVerifyArguments {
    /// The headers, `Name: value` on lines; without --body the body follows after an empty line
    #[arg(long, value_name = "FILE", default_value = "-")]
    pub(crate) headers: PathBuf,
    /// The body, to the byte
    #[arg(long, value_name = "FILE")]
    pub(crate) body: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) trust: TrustOptions,
    /// When the call came [default: now]
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// How far the time of the call may be off
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub(crate) tolerance: String,
    /// The form of the output
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// The server's TOML file; without it and --url the defaults are examined
    #[arg(long, value_name = "FILE", conflicts_with = "url")]
    pub(crate) config: Option<PathBuf>,
    /// Examine the agent at this address only, from outside
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The public keys that sign the card: PEM, a JWK or a JWKS; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Vec<PathBuf>,
    /// A key for the agent; other users of this machine can see it here, A2ACLI_API_KEY hides it
    #[arg(long, value_name = "KEY")]
    pub(crate) api_key: Option<String>,
    /// A token for the agent; other users of this machine can see it here, A2ACLI_BEARER hides it
    #[arg(long, value_name = "TOKEN")]
    pub(crate) bearer: Option<String>,
    /// The form of the output [default: text]
    #[arg(short, long, value_name = "FORMAT", value_enum)]
    pub(crate) output: Option<OutputFormat>,
    /// Log to stderr what is done and what goes over the wire, without secrets
    #[arg(long)]
    pub(crate) debug: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show the client's settings and where each comes from
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio config show
  nuncio config show --config staging.env -o json")]
    Show(ClientOptions),
    /// Check a server's configuration file
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio config check nuncio.toml")]
    Check(ConfigCheckArguments),
    /// Print a server's configuration as it would be in force, with where each setting comes from
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio config dump --config nuncio.toml")]
    Dump(ConfigDumpArguments),
    /// Print the JSON Schema of a server's configuration file
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigCheckArguments {
    /// The TOML file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Accept a server that is open to the network without any key
    #[arg(long)]
    pub(crate) insecure: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigDumpArguments {
    /// The TOML file; without it the defaults are shown
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Accept a server that is open to the network without any key
    #[arg(long)]
    pub(crate) insecure: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Check a database: exit code 0 if it is intact, 1 if not
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio db check nuncio-data/nuncio.db
  nuncio db check postgres://nuncio@db.example/nuncio")]
    Check(DbPathArguments),
    /// Bring a database to the shape that this program knows, as serving it would
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio db migrate nuncio-data
  nuncio db migrate postgres://nuncio@db.example/nuncio")]
    Migrate(DbPathArguments),
    /// Copy a database into a file, while it is served or not
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio db backup nuncio-data /backup/nuncio-2026-01-31.db")]
    Backup(DbBackupArguments),
    /// Check a backup and put it in the place of a database that is not being served
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio db restore /backup/nuncio-2026-01-31.db nuncio-data")]
    Restore(DbRestoreArguments),
}

#[derive(Debug, Args)]
pub(crate) struct DbPathArguments {
    /// The database file, the data folder that holds `nuncio.db`, or the URL of a PostgreSQL database
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// The form of the output [default: text]
    #[arg(short, long, value_name = "FORMAT", value_enum)]
    pub(crate) output: Option<OutputFormat>,
}

#[derive(Debug, Args)]
pub(crate) struct DbBackupArguments {
    /// The database file, or the data folder that holds `nuncio.db`
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// The new file; keys and agents in the data folder are not in it
    #[arg(value_name = "BACKUP")]
    pub(crate) backup: PathBuf,
    /// The form of the output [default: text]
    #[arg(short, long, value_name = "FORMAT", value_enum)]
    pub(crate) output: Option<OutputFormat>,
}

#[derive(Debug, Args)]
pub(crate) struct DbRestoreArguments {
    /// The backup
    #[arg(value_name = "BACKUP")]
    pub(crate) backup: PathBuf,
    /// The database file, or the data folder, which is made if it is not there
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    /// Replace the database that is there
    #[arg(long)]
    pub(crate) force: bool,
    /// The form of the output [default: text]
    #[arg(short, long, value_name = "FORMAT", value_enum)]
    pub(crate) output: Option<OutputFormat>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UpgradeCommand {
    /// Say what serving with this program would do: exit code 0 if it would start, 1 if not
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio upgrade check --config nuncio.toml")]
    Check(UpgradeCheckArguments),
}

#[derive(Debug, Args)]
pub(crate) struct UpgradeCheckArguments {
    /// The server's TOML file; without it the defaults are examined
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The form of the output [default: text]
    #[arg(short, long, value_name = "FORMAT", value_enum)]
    pub(crate) output: Option<OutputFormat>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Make a key: for a caller, printed once with the lines for the server's configuration, for cards, or for webhooks
    #[command(help_template = TEMPLATE, before_help = "Examples:
  nuncio keys create --caller alice
  nuncio keys create --card card-key.pem
  nuncio keys create --webhook webhook-secret.txt")]
    Create(KeysCreateArguments),
}

#[derive(Debug, Args)]
pub(crate) struct KeysCreateArguments {
    /// Whose tasks the key sees
    #[arg(long, value_name = "NAME", default_value = "me")]
    pub(crate) caller: String,
    /// Where
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) workspace: String,
    /// Make a pair of keys for cards instead: the private one in this new file, the public one beside it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["caller", "workspace"])]
    pub(crate) card: Option<PathBuf>,
    /// Make a secret that signs webhooks instead, in this new file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["caller", "workspace", "card"])]
    pub(crate) webhook: Option<PathBuf>,
    /// How the key for cards signs [default: ES256]
    #[arg(long, value_name = "NAME", requires = "card")]
    pub(crate) algorithm: Option<CardAlgorithm>,
}

/// What a key for cards can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CardAlgorithm {
    /// ECDSA with P-256.
    #[default]
    #[value(name = "ES256")]
    Es256,
    /// Ed25519.
    #[value(name = "EdDSA")]
    EdDsa,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionArguments {
    /// Which shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct VersionArguments {
    /// The form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: OutputFormat,
}
