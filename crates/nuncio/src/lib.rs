//! Agents that others can call, durable and guarded, in three lines; and the program `nuncio`.
//!
//! # An agent
//!
//! An [`Agent`] answers messages. The shortest one is a closure; [`serve`] puts it on the net in all
//! versions and bindings of A2A, with its tasks on disk:
//!
//! ```no_run
//! use nuncio::{AgentInfo, agent_fn};
//!
//! let info = AgentInfo::new("hello", "Hello", "Greets whoever writes.");
//! nuncio::serve(agent_fn(info, |_, input| async move { Ok(format!("Hello, {}!", input.message.text())) }))?;
//! # Ok::<(), nuncio::HostError>(())
//! ```
//!
//! `nuncio send -a http://127.0.0.1:8080 world` asks it. Its card is made from the [`AgentInfo`].
//!
//! # Streaming, asking, stopping
//!
//! A run gets a [`RunCx`]: [`text`](RunCx::text) streams words into one artifact,
//! [`status`](RunCx::status) says what goes on, [`artifact`](RunCx::artifact) gives results. A
//! question is a return value, so that nothing waits in memory; the answer comes as the next message
//! of the same task, after a restart too, and [`checkpoint`](RunCx::checkpoint) keeps what was known:
//!
//! ```
//! use nuncio::{AgentInfo, Outcome, Part, Pause, agent_fn};
//!
//! let info = AgentInfo::new("booking", "Booking", "Books a table.");
//! let agent = agent_fn(info, |cx, input| async move {
//!     if input.turn() == 1 {
//!         let question = cx.message(vec![Part::text("For how many?")]);
//!         return Ok(Outcome::Paused(Pause::input(question)));
//!     }
//!     cx.text(format!("A table for {} it is.", input.message.text())).await?;
//!     Ok(Outcome::Done)
//! });
//! ```
//!
//! A cancel fires [`cancellation`](RunCx::cancellation), and drops the run soon after.
//!
//! # Models, tools, other agents
//!
//! [`runtime::ModelAgent`] lets a language model speak and call [tools](runtime::tool), among them
//! other agents ([`AgentTool`](runtime::tool::AgentTool)), here or far away
//! ([`runtime::RemoteAgent`]); what those ask, the user is asked.
//!
//! [`Host`] serves several agents, elsewhere than at the default address, or within another program
//! ([`Host::mount`]). The examples of this crate show each of these.
//!
//! # The program
//!
//! [`run`] is the whole program but for its arguments. `serve` builds a server out of the other
//! crates; `client` is the command line client of the A2A protocol, after the specification of
//! the `a2a-cli` project (SPEC 0.2); `agents`, `push` and `doctor` look after servers, `webhook` is for
//! those who receive. Nothing else in the workspace reads the environment, writes to the standard
//! streams or decides an exit code.

mod administration;
mod agents;
mod arguments;
mod client;
mod config;
mod configuration;
mod database;
mod demo;
mod doctor;
mod host;
mod keys;
mod logging;
mod outcome;
mod portable;
mod push;
mod serve;
mod signals;
mod surroundings;
mod telemetry;
mod version;
mod webhook;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

pub use host::{Host, HostError, Mounted, serve, shutdown_signal};
pub use nuncio_engine::{
    Agent, AgentError, AgentInfo, Answer, Gathered, Input, Outcome, Pause, PauseReason, RunCx,
    RunFuture, Session, SessionError, Span, SpanKind, agent_fn,
};
pub use nuncio_protocol::{self as protocol, Artifact, Message, Part};
pub use {nuncio_client as remote, nuncio_egress as egress, nuncio_runtime as runtime};

use arguments::{
    Arguments, CardCommand, Command, ConfigCommand, KeysCommand, UpgradeCommand, WebhookCommand,
};
use outcome::Failure;
use surroundings::Surroundings;

/// Runs the program with these arguments, the first of which is its name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let surroundings = Surroundings::of_process();
    let json = client::wants_json(&arguments, &surroundings);
    let parsed = match Arguments::try_parse_from(arguments) {
        Ok(parsed) => parsed,
        Err(error) => return outcome::end_of_parsing(&error, json),
    };
    match dispatch(parsed.command, &surroundings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(json),
    }
}

fn dispatch(command: Command, surroundings: &Surroundings) -> outcome::Outcome {
    match command {
        Command::Serve(arguments) => serve::run(arguments, surroundings),
        Command::Demo(arguments) => demo::run(&arguments, surroundings),
        Command::Send(arguments) => client::send(arguments, surroundings),
        Command::Card(command) => card(command, surroundings),
        Command::Task(command) => client::task(command, surroundings),
        Command::Agents(command) => agents::run(&command, surroundings),
        Command::Push(command) => push::run(&command, surroundings),
        Command::Webhook(WebhookCommand::Verify(arguments)) => webhook::verify(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments, surroundings),
        Command::Config(ConfigCommand::Show(options)) => {
            client::config_show(&options, surroundings)
        }
        Command::Config(ConfigCommand::Check(arguments)) => {
            configuration::check(&arguments, surroundings)
        }
        Command::Config(ConfigCommand::Dump(arguments)) => {
            configuration::dump(&arguments, surroundings)
        }
        Command::Config(ConfigCommand::Schema) => configuration::schema(),
        Command::Db(command) => database::run(&command),
        Command::Upgrade(UpgradeCommand::Check(arguments)) => {
            doctor::upgrade_check(&arguments, surroundings)
        }
        Command::Keys(KeysCommand::Create(arguments)) => keys::create(&arguments),
        Command::Completion(arguments) => completion(&arguments),
        Command::Version(arguments) => version::run(&arguments),
    }
}

fn card(command: CardCommand, surroundings: &Surroundings) -> outcome::Outcome {
    match command {
        CardCommand::Get(arguments) => client::card_get(arguments, surroundings),
        CardCommand::Sign(arguments) => client::card_sign(&arguments, surroundings),
        CardCommand::Verify(arguments) => client::card_verify(&arguments, surroundings),
        CardCommand::Lint(arguments) => client::card_lint(&arguments, surroundings),
        CardCommand::Diff(arguments) => client::card_diff(&arguments, surroundings),
    }
}

fn completion(arguments: &arguments::CompletionArguments) -> outcome::Outcome {
    let mut script = Vec::new();
    let mut command = Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "nuncio", &mut script);
    outcome::print(&String::from_utf8_lossy(&script)).map_err(Failure::from)
}
