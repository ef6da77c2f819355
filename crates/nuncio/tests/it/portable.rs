//! `nuncio task export|import`: tasks move from one server's data to another's.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Said, Server, exchange, nuncio, run};

fn said(folder: &Path, words: &[&str], input: &str) -> Said {
    let mut command = nuncio(folder);
    command.args(words);
    run(command, input)
}

/// The data of a server with a completed task, one that waits, and one with a webhook.
fn filled() -> (tempfile::TempDir, Vec<String>) {
    let config = std::fs::read_to_string(crate::support::example("damaged-order")).unwrap();
    let config = format!("{config}\n[webhooks]\nallow_networks = [\"127.0.0.0/8\"]\n");
    let server = Server::configured(&config);
    let waiting = server.send(&["Order ORD-1042 arrived damaged"]).exits(0);
    let context = waiting.field("Context ID");
    let more = ["--context-id", &context, "--text", "see", "--text", "this"];
    let done = server.send(&more).exits(0).field("Task ID");
    let accompanied = [
        "Order ORD-1042 came in pieces",
        "--metadata",
        "{\"desk\": 7}",
    ];
    let waiting = server.send(&accompanied).exits(0);
    let task = waiting.field("Task ID");
    let webhook = json!({
        "url": "http://127.0.0.1:9/hook", "token": "hush-token",
        "authentication": {"scheme": "Bearer", "credentials": "hush-credentials"}
    });
    let path = format!("/tasks/{task}/pushNotificationConfigs");
    let headers = [("Content-Type", "application/json")];
    let made = exchange(&server.url, "POST", &path, &headers, &webhook.to_string());
    assert_eq!(made.status, 200, "{made:?}");
    (server.crash(), vec![done, task])
}

fn exported(folder: &Path, more: &[&str]) -> String {
    let words = [&["task", "export", "nuncio-data"], more].concat();
    said(folder, &words, "").exits(0).out
}

#[test]
fn tasks_move_with_logs_keys_and_webhooks() {
    let (kept, ids) = filled();
    let folder = kept.path();
    let text = exported(folder, &[]);
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(
        text.contains("\\\"desk\\\":7"),
        "what accompanied a message: {text}"
    );
    assert!(
        !text.contains("hush"),
        "no secrets unless they are asked for"
    );
    let secret = exported(folder, &["--with-secrets"]);
    assert!(secret.contains("hush-token") && secret.contains("hush-credentials"));
    std::fs::rename(folder.join("nuncio-data/token.key"), folder.join("k")).unwrap();
    let words = ["task", "export", "nuncio-data", "--with-secrets"];
    let without = said(folder, &words, "").exits(1);
    assert!(without.err.contains("token.key"), "{without:?}");
    std::fs::rename(folder.join("k"), folder.join("nuncio-data/token.key")).unwrap();
    said(
        folder,
        &["task", "export", "nuncio-data", "--out", "t.jsonl"],
        "",
    )
    .exits(0);
    assert_eq!(
        std::fs::read_to_string(folder.join("t.jsonl")).unwrap(),
        text
    );
    let twice = ["task", "export", "nuncio-data", "--out", "t.jsonl"];
    assert!(said(folder, &twice, "").exits(1).err.contains("t.jsonl"));

    let import = |input: &str| {
        said(
            folder,
            &["task", "import", "-", "moved.db", "-o", "json"],
            input,
        )
    };
    let counts = |imported: u64, there: u64| json!({"imported": imported, "alreadyThere": there, "refused": 0});
    assert_eq!(import(&text).exits(0).json(), counts(2, 0));
    assert_eq!(
        import(&text).exits(0).json(),
        counts(0, 2),
        "again, and nothing happens"
    );
    said(folder, &["db", "check", "moved.db"], "").exits(0);
    let again = said(folder, &["task", "export", "moved.db"], "")
        .exits(0)
        .out;
    assert_eq!(again, text, "what has moved is what there was");

    let store = format!("sqlite:{}", folder.join("moved.db").display());
    let config = crate::support::example("damaged-order");
    let server = Server::start(&["--store", &store, "--config", &config]);
    let done = server.run(&["task", "get"], &[&ids[0]]).exits(0);
    assert_eq!(done.field("State"), "COMPLETED");
    let answered = server.send(&["--task-id", &ids[1], "--text", "see", "--text", "this"]);
    assert_eq!(
        answered.exits(0).field("State"),
        "COMPLETED",
        "it goes on there"
    );
}

#[test]
fn what_cannot_be_imported_is_told_with_its_line() {
    let (kept, ids) = filled();
    let folder = kept.path();
    let text = exported(folder, &[]);
    let import = |input: &str| said(folder, &["task", "import", "-", "moved.db"], input);
    let lines: Vec<&str> = text.lines().collect();

    let cut = import(&lines[..3].join("\n")).exits(2);
    assert!(cut.err.contains("the file ends early"), "{cut:?}");
    assert!(cut.out.contains("Imported: 2"), "{cut:?}");
    let missing = import(&[lines[0], lines[1], lines[3]].join("\n")).exits(2);
    assert!(
        missing.err.contains("line 3: 1 tasks instead of 2"),
        "{missing:?}"
    );
    let other = import("{\"some\":\"thing\"}\n").exits(2);
    assert!(
        other.err.contains("line 1: this is no export of tasks"),
        "{other:?}"
    );
    let newer = lines[0].replace("\"nuncioTasks\":1", "\"nuncioTasks\":2");
    let newer = import(&newer).exits(2);
    assert!(
        newer.err.contains("version 2, this program reads 1"),
        "{newer:?}"
    );
    let mut line: Value = serde_json::from_str(lines[1]).unwrap();
    line["turn"] = json!("one");
    let wrong = import(&[lines[0], &line.to_string()].join("\n")).exits(2);
    assert!(wrong.err.contains("line 2: turn: "), "{wrong:?}");
    let mut line: Value = serde_json::from_str(lines[1]).unwrap();
    line["log"].as_array_mut().unwrap().pop();
    let torn = import(&[lines[0], &line.to_string()].join("\n")).exits(2);
    assert!(
        torn.err.contains("a task is the fold of its log"),
        "{torn:?}"
    );

    // Another task under the same id: told, and the one that is there stays.
    let changed = text.replace("arrived damaged", "never arrived");
    let refused = import(&changed).exits(1);
    assert!(
        refused.err.contains(&format!("refused: task {}", ids[0])),
        "{refused:?}"
    );
    assert!(refused.out.contains("Refused: 1"), "{refused:?}");
    let there = said(folder, &["task", "export", "moved.db"], "")
        .exits(0)
        .out;
    assert_eq!(there, text);
}

#[test]
fn a_served_store_is_exported_from_a_backup() {
    let server = Server::echo();
    server.send(&["x"]).exits(0);
    let folder = server.folder.path();
    let used = said(folder, &["task", "export", "nuncio-data"], "").exits(1);
    assert!(
        used.err.contains("hint: ") && used.err.contains("db backup"),
        "{used:?}"
    );
    said(folder, &["db", "backup", "nuncio-data", "copy.db"], "").exits(0);
    let text = said(folder, &["task", "export", "copy.db"], "")
        .exits(0)
        .out;
    assert_eq!(text.lines().count(), 3);
    let nowhere = said(folder, &["task", "export", "nowhere.db"], "").exits(2);
    assert!(nowhere.err.contains("there is no such file"), "{nowhere:?}");
    assert!(!folder.join("nowhere.db").exists(), "and none is made");
}
