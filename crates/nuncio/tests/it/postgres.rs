//! Tasks in PostgreSQL: one setting, and several servers may share them.

use crate::database::Database;
use crate::support::{Server, nuncio, run};

/// `store.url` is all that changes; what one server has taken another serves, and goes on with.
#[test]
fn servers_share_a_database() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let Some(database) = runtime.block_on(Database::new()) else {
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
