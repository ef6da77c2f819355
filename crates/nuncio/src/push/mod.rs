//! `nuncio push`: the webhooks of a running server, and a receiver for development.
//!
//! `show` writes what a server says of webhooks; `listen` receives, `notification` is what came.

mod listen;
mod notification;
mod show;

use http::Method;
use nuncio_engine::SystemClock;
use nuncio_protocol::{Clock as _, Timestamp};
use serde_json::{Value, json};

use crate::administration::{Hints, Place, Server};
use crate::arguments::{
    PushCommand, PushListArguments, PushNameArguments, PushRecoverArguments, PushRedeliverArguments,
};
use crate::client::{Text, block_on, parse_duration};
use crate::outcome::{Failure, Outcome};
use crate::surroundings::Surroundings;

/// What to do where a server refuses.
const HINTS: Hints = Hints {
    conflict: "",
    not_found: "`nuncio push list` shows those that are there",
    bad_request: "",
};

/// Webhooks asked for at a time.
const PAGE: usize = 1_000;

/// Runs one of the commands.
pub(crate) fn run(command: &PushCommand, around: &Surroundings) -> Outcome {
    match command {
        PushCommand::List(arguments) => list(&Server::new(&arguments.server, around)?, arguments),
        PushCommand::Show(arguments) => show(&Server::new(&arguments.server, around)?, arguments),
        PushCommand::Redeliver(arguments) => {
            redeliver(&Server::new(&arguments.name.server, around)?, arguments)
        }
        PushCommand::Recover(arguments) => {
            recover(&Server::new(&arguments.server, around)?, arguments)
        }
        PushCommand::Test(arguments) => test(&Server::new(&arguments.server, around)?, arguments),
        PushCommand::Listen(arguments) => listen::run(arguments),
    }
}

fn list(server: &Server, arguments: &PushListArguments) -> Outcome {
    let webhooks = block_on(all(server, arguments))?;
    if server.printer.is_json() {
        return server.printer.json(&json!({ "webhooks": webhooks }));
    }
    let mut text = Text::new(false);
    for webhook in &webhooks {
        show::webhook(&mut text, webhook);
    }
    server.printer.text(text)
}

/// Reads page after page.
async fn all(server: &Server, arguments: &PushListArguments) -> Outcome<Vec<Value>> {
    let limit = arguments.limit.unwrap_or(usize::MAX);
    let mut webhooks: Vec<Value> = Vec::new();
    let mut next = Value::Null;
    while webhooks.len() < limit {
        let size = PAGE.min(limit - webhooks.len()).to_string();
        let mut query = vec![("limit", size.as_str())];
        if let Some(task) = &arguments.task {
            query.push(("task", task));
        }
        if arguments.trouble {
            query.push(("trouble", "true"));
        }
        for (name, member) in [("afterTask", "task"), ("afterConfig", "config")] {
            if let Some(value) = next[member].as_str() {
                query.push((name, value));
            }
        }
        let place = Place {
            path: &["push"],
            query: &query,
            hints: HINTS,
        };
        let asked = server.ask("list the webhooks", Method::GET, place, None);
        let (_, mut answer) = asked.await?;
        if let Value::Array(page) = answer["webhooks"].take() {
            webhooks.extend(page);
        }
        next = answer["next"].take();
        if next.is_null() {
            break;
        }
    }
    Ok(webhooks)
}

fn show(server: &Server, arguments: &PushNameArguments) -> Outcome {
    let PushNameArguments {
        task, config_id, ..
    } = arguments;
    let doing = format!("show the webhook {config_id} of task {task}");
    let path = ["push", task, config_id];
    let (_, answer) = block_on(server.ask(&doing, Method::GET, place(&path), None))?;
    if server.printer.is_json() {
        return server.printer.json(&answer);
    }
    let mut text = Text::new(false);
    show::webhook(&mut text, &answer);
    for letter in answer["letters"].as_array().into_iter().flatten() {
        show::letter(&mut text, letter);
    }
    for call in answer["calls"].as_array().into_iter().flatten() {
        show::call(&mut text, call);
    }
    server.printer.text(text)
}

fn redeliver(server: &Server, arguments: &PushRedeliverArguments) -> Outcome {
    let PushNameArguments {
        task, config_id, ..
    } = &arguments.name;
    let mut body = json!({});
    if let Some(position) = arguments.position {
        body["position"] = position.into();
    }
    if let Some(since) = &arguments.since {
        body["since"] = json!(since_of(since)?);
    }
    let doing = format!("deliver again to the webhook {config_id} of task {task}");
    let path = ["push", task, config_id, "redeliver"];
    let asked = server.ask(&doing, Method::POST, place(&path), Some(&body));
    told(server, &block_on(asked)?.1)
}

fn recover(server: &Server, arguments: &PushRecoverArguments) -> Outcome {
    let body = json!({ "since": since_of(&arguments.since)? });
    let path = ["push", "recover"];
    let doing = "deliver again what was given up";
    let asked = server.ask(doing, Method::POST, place(&path), Some(&body));
    told(server, &block_on(asked)?.1)
}

/// Says how many dead letters are delivered again.
fn told(server: &Server, answer: &Value) -> Outcome {
    if server.printer.is_json() {
        return server.printer.json(answer);
    }
    let mut text = Text::new(false);
    text.field("Letters", &answer["letters"].to_string());
    server.printer.text(text)
}

fn test(server: &Server, arguments: &PushNameArguments) -> Outcome {
    let PushNameArguments {
        task, config_id, ..
    } = arguments;
    let doing = format!("try the webhook {config_id} of task {task} out");
    let path = ["push", task, config_id, "test"];
    let (_, answer) = block_on(server.ask(&doing, Method::POST, place(&path), None))?;
    if server.printer.is_json() {
        server.printer.json(&answer)?;
    } else {
        let mut text = Text::new(false);
        show::tried(&mut text, &answer);
        server.printer.text(text)?;
    }
    match answer["taken"].as_bool() {
        Some(true) => Ok(()),
        _ => Err(Failure::Shown),
    }
}

fn place<'a>(path: &'a [&'a str]) -> Place<'a> {
    Place {
        path,
        query: &[],
        hints: HINTS,
    }
}

/// A time, or how long ago.
fn since_of(text: &str) -> Outcome<Timestamp> {
    if let Ok(time) = Timestamp::parse(text) {
        return Ok(time);
    }
    let ago = parse_duration(text).map_err(|_| {
        Failure::usage(format!("failed to read --since: \"{text}\" is no time"))
            .hint("for example --since 2h, or --since 2026-01-31T12:00:00Z")
    })?;
    let ago = i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
    let now = SystemClock.now().unix_ms();
    Ok(Timestamp::from_unix_ms(now.saturating_sub(ago)))
}
