//! Tasks in PostgreSQL: one setting, and several servers may share them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nuncio_testkit::{Answer, Notified, Receiver};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::database::Database;
use crate::deliveries::{has_ended, runtime, split};
use crate::push::{config, push, send, shown, until};
use crate::support::{Said, Server, nuncio, run};

/// An empty database, and what drives connections to it; `None` if PostgreSQL is to be left out.
fn a_database() -> Option<(Runtime, Database)> {
    let runtime = runtime();
    let database = runtime.block_on(Database::new())?;
    Some((runtime, database))
}

/// `store.url` is all that changes; what one server has taken another serves, and goes on with.
#[test]
fn servers_share_a_database() {
    let Some((_runtime, database)) = a_database() else {
        return;
    };
    let config = std::fs::read_to_string(crate::support::example("damaged-order")).unwrap();
    let config = format!("{config}\n[store]\nurl = \"{}\"\n", database.url());
    let first = Server::configured(&config);
    let second = Server::configured(&config);
    let waiting = first.send(&["Order ORD-1042 arrived damaged"]).exits(0);
    let (task, context) = (waiting.field("Task ID"), waiting.field("Context ID"));
    let seen = second.run(&["task", "get"], &[&task]).exits(0);
    assert_eq!(seen.field("State"), "INPUT_REQUIRED");
    let answer = ["--context-id", &context, "--text", "see", "--text", "this"];
    let done = second.send(&answer).exits(0);
    assert_eq!(
        (done.field("Task ID"), done.field("State")),
        (task.clone(), "COMPLETED".to_owned())
    );
    first.crash();
    let third = Server::configured(&config);
    let kept = third.run(&["task", "get"], &[&task]).exits(0);
    assert_eq!(kept.field("State"), "COMPLETED");
    let password = database.password();
    for server in [&second, &third] {
        assert!(!server.log().contains(&password), "{}", server.log());
    }
}

/// `store.wake_ups` is where the server goes with what it has to tell.
#[test]
fn wake_ups_go_where_the_configuration_says() {
    let Some((_runtime, database)) = a_database() else {
        return;
    };
    let nats = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    nats.set_nonblocking(true).unwrap();
    let (url, address) = (database.url(), nats.local_addr().unwrap());
    let store = format!("[store]\nurl = \"{url}\"\nwake_ups = \"nats://{address}\"\n");
    let server = Server::configured(&store);
    crate::support::until(|| nats.accept().is_ok());
    // It says nothing, and the server does without it.
    server.send(&["hello"]).exits(0);
}

/// A database that is not there ends the start with a reason, in which no password stands.
#[test]
fn a_database_that_is_not_there_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = nuncio(folder.path());
    let url = "postgres://ada:s3cret@127.0.0.1:1/nuncio";
    command.args(["serve", "--listen", "127.0.0.1:0", "--store", url]);
    let said = run(command, "");
    assert_ne!(said.code, 0);
    let reason = "failed to open the store postgres://127.0.0.1:1/nuncio: the store is unavailable";
    assert!(said.err.contains(reason), "{}", said.err);
    assert!(!said.err.contains("s3cret"), "{}", said.err);
}

fn said(folder: &Path, words: &[&str]) -> Said {
    let mut command = nuncio(folder);
    command.args(words);
    run(command, "")
}

/// Tasks of a file move into a database, and a server goes on with them there; what stays theirs is
/// what is looked after from here.
#[test]
fn tasks_move_from_a_file_into_a_database() {
    let Some((runtime, database)) = a_database() else {
        return;
    };
    let example = std::fs::read_to_string(crate::support::example("damaged-order")).unwrap();
    let server = Server::configured(&example);
    let waiting = server.send(&["Order ORD-1042 arrived damaged"]).exits(0);
    let (task, context) = (waiting.field("Task ID"), waiting.field("Context ID"));
    let other = server.send(&["Order ORD-1042 came in pieces"]).exits(0);
    let other = other.field("Task ID");
    let more = ["--task-id", &other, "--text", "see", "--text", "this"];
    server.send(&more).exits(0);
    let kept = server.crash();
    let folder = kept.path();
    let url = database.url();

    let upgrade = format!("[store]\nurl = \"{url}\"\n");
    std::fs::write(folder.join("upgrade.toml"), upgrade).unwrap();
    let foretold = || said(folder, &["upgrade", "check", "--config", "upgrade.toml"]).exits(0);
    assert!(foretold().out.contains("a start would make it"));
    let nothing = said(folder, &["db", "check", &url]).exits(1);
    assert!(nothing.err.contains("no schema nuncio"), "{nothing:?}");
    let made = said(folder, &["db", "migrate", &url, "-o", "json"]).exits(0);
    assert_eq!(made.json()["versionBefore"], 0);
    assert!(foretold().out.contains("nothing to carry over"));

    let text = said(folder, &["task", "export", "nuncio-data"])
        .exits(0)
        .out;
    std::fs::write(folder.join("tasks.jsonl"), &text).unwrap();
    let import = || {
        said(
            folder,
            &["task", "import", "tasks.jsonl", &url, "-o", "json"],
        )
        .exits(0)
    };
    assert_eq!(import().json()["imported"], 2);
    assert_eq!(import().json()["alreadyThere"], 2);
    let checked = said(folder, &["db", "check", &url, "-o", "json"]).exits(0);
    let checked = checked.json();
    assert_eq!(
        (&checked["state"], &checked["tasks"]),
        (&"intact".into(), &2.into())
    );
    assert!(!checked.to_string().contains(&database.password()));

    let server = Server::configured(&format!("{example}\n[store]\nurl = \"{url}\"\n"));
    let done = server.run(&["task", "get"], &[&other]).exits(0);
    assert_eq!(done.field("State"), "COMPLETED");
    let answer = ["--context-id", &context, "--text", "see", "--text", "this"];
    let done = server.send(&answer).exits(0);
    assert_eq!(
        (done.field("Task ID"), done.field("State")),
        (task, "COMPLETED".to_owned()),
        "it goes on there"
    );
    // And back, from a database that is being served: what was done there is in it.
    let back = said(folder, &["task", "export", &url, "--out", "back.jsonl"]);
    back.exits(0);
    let moved = said(
        folder,
        &["task", "import", "back.jsonl", "back.db", "-o", "json"],
    )
    .exits(0);
    assert_eq!(moved.json()["imported"], 2);
    let again = said(folder, &["task", "import", "tasks.jsonl", &url]).exits(1);
    assert!(again.err.contains("another state of it"), "{again:?}");

    let damage = "DELETE FROM nuncio.log WHERE first = 1";
    runtime.block_on(async {
        let client = database.client().await;
        client.batch_execute(damage).await.unwrap();
    });
    let damaged = said(folder, &["db", "check", &url]).exits(1);
    assert!(damaged.out.contains("Problem: task "), "{damaged:?}");
    assert!(
        damaged.err.contains("PostgreSQL's own tools"),
        "{damaged:?}"
    );
    assert!(!damaged.err.contains(&database.password()), "{damaged:?}");
}

/// What has expired is gone for all servers, whichever of them has swept it.
#[test]
fn an_expired_task_is_gone_for_every_server() {
    let Some((_runtime, database)) = a_database() else {
        return;
    };
    let store = format!("[store]\nurl = \"{}\"\n", database.url());
    let keeping = Server::configured(&store);
    let task = keeping.send(&["hello"]).exits(0).field("Task ID");
    let held = keeping.send(&["hold", "--async"]).exits(0).field("Task ID");
    keeping.run(&["task", "get"], &[&task]).exits(0);
    let sweeping = format!("{store}[retention]\ntasks = \"1s\"\nsweep_seconds = 1\n");
    let sweeping = Server::configured(&sweeping);
    for server in [&sweeping, &keeping] {
        crate::support::until(|| server.run(&["task", "get"], &[&task]).code == 1);
        server.run(&["task", "get"], &[&held]).exits(0);
    }
    assert_eq!(
        said(keeping.folder.path(), &["db", "check", &database.url()])
            .exits(0)
            .field("Tasks"),
        "1"
    );
}

fn webhooks_in(database: &Database) -> String {
    let config = config("timeout_seconds = 1");
    format!("{config}\n[store]\nurl = \"{}\"\n", database.url())
}

/// The positions that a receiver was told of a task, as they came.
fn told(receiver: &Receiver, task: &str) -> Vec<u64> {
    let calls = receiver.calls();
    let told = calls.iter().map(split);
    told.filter_map(|(of, position)| (of == task).then_some(position))
        .collect()
}

/// P6: of two servers that both know of a webhook, one at a time calls it: undisturbed, each event
/// comes once, and in order.
#[test]
fn servers_on_one_database_tell_each_event_once() {
    let runtime = runtime();
    let Some(database) = runtime.block_on(Database::new()) else {
        return;
    };
    let receiver = runtime.block_on(Receiver::start());
    let config = webhooks_in(&database);
    let servers = [Server::configured(&config), Server::configured(&config)];
    let mut tasks = Vec::new();
    for n in 0..30 {
        let webhook = json!({"id": "w", "url": receiver.url("/")});
        tasks.push(send(&servers[n % 2], &format!("m{n}"), &webhook));
        if n % 5 == 0 {
            // Has both look for all that is behind, whoever has begun with it.
            for server in &servers {
                push(server, &["recover", "--since", "1h"]).exits(0);
            }
        }
    }
    for (n, task) in tasks.iter().enumerate() {
        let server = &servers[(n + 1) % 2];
        let done = shown(server, task, |one| one["delivered"] == one["newest"]);
        let newest = done["newest"].as_u64().unwrap();
        let expected: Vec<u64> = (1..=newest).collect();
        assert_eq!(told(&receiver, task), expected);
    }
}

/// P6, P7: what a server was delivering when it was killed another one goes on with once the claim
/// is over: with the same ids, and with secrets that the first one has sealed.
#[test]
fn another_server_goes_on_delivering_for_one_that_was_killed() {
    let runtime = runtime();
    let Some(database) = runtime.block_on(Database::new()) else {
        return;
    };
    // Of each task the second call is not answered, until nobody hangs any more.
    let hangs = Arc::new(AtomicUsize::new(0));
    let receiver = runtime.block_on(Receiver::answering({
        let hangs = Arc::clone(&hangs);
        move |_, call: &Notified| match split(call).1 {
            2 if hangs.load(Ordering::SeqCst) < TASKS => {
                hangs.fetch_add(1, Ordering::SeqCst);
                Answer::Hang
            }
            _ => Answer::Status(200),
        }
    }));
    let config = webhooks_in(&database).replace("timeout_seconds = 1", "timeout_seconds = 8");
    let first = Server::configured(&config);
    let second = Server::configured(&config);
    let mut tasks = Vec::new();
    for n in 0..TASKS {
        let webhook = json!({"id": "w", "url": receiver.url("/"), "token": "tok",
            "authentication": {"scheme": "Bearer", "credentials": "abc"}});
        tasks.push(send(&first, &format!("m{n}"), &webhook));
    }
    until(|| (hangs.load(Ordering::SeqCst) == TASKS).then_some(()));
    first.crash();
    for task in &tasks {
        until(|| {
            let done = told(&receiver, task).len() >= 2;
            let ended = |call: &Notified| split(call).0 == task && has_ended(call);
            (done && receiver.calls().iter().any(ended)).then_some(())
        });
        let told = told(&receiver, task);
        let newest = told.last().copied().unwrap();
        let mut once = told.clone();
        once.dedup();
        assert_eq!(once, (1..=newest).collect::<Vec<u64>>(), "{told:?}");
        assert_eq!(
            told.len(),
            once.len() + 1,
            "the call that was cut: {told:?}"
        );
        shown(&second, task, |one| one["delivered"] == newest);
    }
    for call in receiver.calls() {
        assert_eq!(call.header("authorization"), "Bearer abc");
        assert_eq!(call.header("x-a2a-notification-token"), "tok");
    }
}

/// Tasks that are being told of when their server is killed.
const TASKS: usize = 4;
