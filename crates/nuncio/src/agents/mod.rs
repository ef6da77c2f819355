//! `nuncio agents`: the agents of a running server, changed while it runs.
//!
//! `file` reads what is to be added, [`Server`] asks the server; what an agent may say is the
//! server's to judge, since it may be of another version.

mod file;

use http::{Method, StatusCode};
use serde_json::Value;

use crate::administration::{Hints, Place, Server};
use crate::arguments::{AgentsAddArguments, AgentsCommand, AgentsNameArguments};
use crate::client::{Text, block_on};
use crate::config::{NAME_HINT, is_name};
use crate::outcome::{Failure, Outcome};
use crate::surroundings::Surroundings;

/// Runs one of the commands.
pub(crate) fn run(command: &AgentsCommand, around: &Surroundings) -> Outcome {
    match command {
        AgentsCommand::List(arguments) => list(&Server::new(&arguments.server, around)?),
        AgentsCommand::Get(arguments) => get(&Server::new(&arguments.server, around)?, arguments),
        AgentsCommand::Add(arguments) => add(&Server::new(&arguments.server, around)?, arguments),
        AgentsCommand::Remove(arguments) => {
            remove(&Server::new(&arguments.server, around)?, arguments)
        }
    }
}

/// What to do where a server refuses.
const HINTS: Hints = Hints {
    conflict: "--replace changes agents that were added; those of the configuration are changed there",
    not_found: "`nuncio agents list` shows those that are there",
    bad_request: "`nuncio config schema` prints what an agent may say",
};

fn place<'a>(path: &'a [&'a str]) -> Place<'a> {
    Place {
        path,
        query: &[],
        hints: HINTS,
    }
}

fn list(server: &Server) -> Outcome {
    let asked = server.ask("list the agents", Method::GET, place(&["agents"]), None);
    let (_, answer) = block_on(asked)?;
    if server.printer.is_json() {
        return server.printer.json(&answer);
    }
    let mut text = Text::new(false);
    for agent in answer["agents"].as_array().into_iter().flatten() {
        describe(&mut text, agent);
    }
    server.printer.text(text)
}

fn get(server: &Server, arguments: &AgentsNameArguments) -> Outcome {
    let id = named(&arguments.id)?;
    let doing = format!("get the agent {id}");
    let (_, answer) = block_on(server.ask(&doing, Method::GET, place(&["agents", id]), None))?;
    if server.printer.is_json() {
        return server.printer.json(&answer);
    }
    let mut text = Text::new(false);
    describe(&mut text, &answer);
    if let Some(config) = answer.get("config") {
        text.block("Configuration", &file::as_toml(config));
    }
    server.printer.text(text)
}

fn add(server: &Server, arguments: &AgentsAddArguments) -> Outcome {
    let agent = file::read(&arguments.file)?;
    let id = agent["id"].as_str().unwrap_or_default();
    let doing = format!("add the agent {id}");
    let path = ["agents", named(id)?];
    let (method, path) = if arguments.replace {
        (Method::PUT, &path[..])
    } else {
        (Method::POST, &path[..1])
    };
    let (status, answer) = block_on(server.ask(&doing, method, place(path), Some(&agent)))?;
    if server.printer.is_json() {
        return server.printer.json(&answer);
    }
    let mut text = Text::new(false);
    text.field("Agent", id);
    text.field(
        "State",
        if status == StatusCode::CREATED {
            "added"
        } else {
            "replaced"
        },
    );
    server.printer.text(text)
}

fn remove(server: &Server, arguments: &AgentsNameArguments) -> Outcome {
    let id = named(&arguments.id)?;
    let doing = format!("remove the agent {id}");
    let (_, answer) = block_on(server.ask(&doing, Method::DELETE, place(&["agents", id]), None))?;
    if server.printer.is_json() {
        return server.printer.json(&answer);
    }
    let mut text = Text::new(false);
    text.field("Agent", id);
    text.field("State", "removed");
    server.printer.text(text)
}

/// An id that can stand in a path.
fn named(id: &str) -> Outcome<&str> {
    if is_name(id) {
        return Ok(id);
    }
    Err(Failure::usage(format!("\"{id}\" is no id of an agent")).hint(NAME_HINT))
}

fn describe(text: &mut Text, agent: &Value) {
    text.field("Agent", agent["id"].as_str().unwrap_or_default());
    for (label, value) in [
        ("Name", &agent["name"]),
        ("Description", &agent["description"]),
        ("Kind", &agent["config"]["kind"]),
        ("Source", &agent["source"]),
        ("URL", &agent["url"]),
        ("Card URL", &agent["cardUrl"]),
    ] {
        text.optional(label, value.as_str());
    }
}
