//! The program `nuncio` as a library: arguments, configuration, wiring, output, exit codes.
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
mod doctor;
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

use arguments::{
    Arguments, CardCommand, Command, ConfigCommand, KeysCommand, UpgradeCommand, WebhookCommand,
};
use outcome::{Failure, Outcome};
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

fn dispatch(command: Command, surroundings: &Surroundings) -> Outcome {
    match command {
        Command::Serve(arguments) => serve::run(arguments, surroundings),
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

fn card(command: CardCommand, surroundings: &Surroundings) -> Outcome {
    match command {
        CardCommand::Get(arguments) => client::card_get(arguments, surroundings),
        CardCommand::Sign(arguments) => client::card_sign(&arguments, surroundings),
        CardCommand::Verify(arguments) => client::card_verify(&arguments, surroundings),
        CardCommand::Lint(arguments) => client::card_lint(&arguments, surroundings),
        CardCommand::Diff(arguments) => client::card_diff(&arguments, surroundings),
    }
}

fn completion(arguments: &arguments::CompletionArguments) -> Outcome {
    let mut script = Vec::new();
    let mut command = Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "nuncio", &mut script);
    outcome::print(&String::from_utf8_lossy(&script)).map_err(Failure::from)
}
