//! `nuncio db` and `nuncio upgrade check` on the data of a real server.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::report::Report;
use crate::support::{Said, Server, exchange, nuncio, run};

fn said(folder: &Path, words: &[&str]) -> Said {
    let mut command = nuncio(folder);
    command.args(words);
    run(command, "")
}

/// Sends one message; gives the task of the answer.
fn sent(url: &str, id: &str) -> String {
    let message = json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": id}]});
    let body = json!({ "message": message }).to_string();
    let headers = [("Content-Type", "application/json")];
    let answer = exchange(url, "POST", "/message:send", &headers, &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["task"]["id"].as_str().unwrap().to_owned()
}

/// R26: a backup under load is restored elsewhere and holds all that was acknowledged before it.
#[test]
fn r26_a_backup_under_load_is_restored_elsewhere() {
    let mut report = Report::new("backup", "R26");
    let server = Server::echo();
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let stop = Arc::new(AtomicBool::new(false));
    let senders: Vec<_> = (0..8)
        .map(|sender| {
            let url = server.url.clone();
            let (acknowledged, stop) = (Arc::clone(&acknowledged), Arc::clone(&stop));
            std::thread::spawn(move || {
                for n in 0..2_000 {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    let task = sent(&url, &format!("m-{sender}-{n}"));
                    acknowledged.lock().unwrap().push(task);
                }
            })
        })
        .collect();
    while acknowledged.lock().unwrap().len() < 300 {
        std::thread::yield_now();
    }
    let before = acknowledged.lock().unwrap().clone();
    let folder = server.folder.path();
    let made = said(
        folder,
        &["db", "backup", "nuncio-data", "copy.db", "-o", "json"],
    )
    .exits(0);
    assert_eq!(made.json()["backup"], "copy.db");
    let during = acknowledged.lock().unwrap().len();
    stop.store(true, Ordering::SeqCst);
    for sender in senders {
        sender.join().unwrap();
    }
    assert!(during >= before.len());

    let restored = said(folder, &["db", "restore", "copy.db", "elsewhere"]).exits(0);
    assert!(restored.field("Tasks").parse::<usize>().unwrap() >= before.len());
    let checked = said(folder, &["db", "check", "elsewhere"]).exits(0);
    assert_eq!(checked.field("State"), "intact");
    let data = folder.join("elsewhere");
    let data = data.to_str().unwrap();
    let second = Server::start(&["--data", data]);
    for task in &before {
        let path = format!("/tasks/{task}");
        let answer = exchange(&second.url, "GET", &path, &[], "");
        assert_eq!(answer.status, 200, "{task} is lost");
        let state = &answer.json()["status"]["state"];
        assert_eq!(state, "TASK_STATE_COMPLETED", "{task}");
    }
    report.set("acknowledged_before", before.len());
    report.set("acknowledged_meanwhile", during - before.len());
    report.passed();
}

fn with_a_task() -> TempDir {
    let server = Server::echo();
    server.send(&["x"]).exits(0);
    server.crash()
}

#[test]
fn a_restore_replaces_only_by_force_and_never_under_a_server() {
    let kept = with_a_task();
    let folder = kept.path();
    said(folder, &["db", "backup", "nuncio-data", "copy.db"]).exits(0);
    let again = said(folder, &["db", "backup", "nuncio-data", "copy.db"]).exits(1);
    assert!(
        again.err.contains("copy.db: the file exists already"),
        "{again:?}"
    );
    let refused = said(folder, &["db", "restore", "copy.db", "nuncio-data"]).exits(1);
    assert!(
        refused.err.contains("there is a database already"),
        "{refused:?}"
    );
    assert!(
        refused.err.contains("hint: --force replaces it"),
        "{refused:?}"
    );
    said(
        folder,
        &["db", "restore", "copy.db", "nuncio-data", "--force"],
    )
    .exits(0);

    let server = Server::start_in(kept, &[] as &[&str]);
    let words = ["db", "restore", "copy.db", "nuncio-data", "--force"];
    let used = said(server.folder.path(), &words).exits(1);
    assert!(used.err.contains("in use by another process"), "{used:?}");
    assert!(used.err.contains("hint: stop the server"), "{used:?}");
    server.send(&["still there"]).exits(0);
}

#[test]
fn a_damaged_database_is_told_in_either_form() {
    let kept = with_a_task();
    let folder = kept.path();
    let good = said(folder, &["db", "check", "nuncio-data", "-o", "json"])
        .exits(0)
        .json();
    assert_eq!(
        (&good["state"], &good["tasks"]),
        (&json!("intact"), &json!(1))
    );
    let path = folder.join("nuncio-data/nuncio.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let half = bytes.len() / 2;
    bytes[half..].fill(0x55);
    std::fs::write(&path, bytes).unwrap();
    let bad = said(folder, &["db", "check", "nuncio-data"]).exits(1);
    assert!(bad.err.contains("damaged"), "{bad:?}");
    assert!(
        bad.err.contains("db restore") || bad.out.is_empty(),
        "{bad:?}"
    );
    let copied = said(folder, &["db", "restore", "nuncio-data", "elsewhere"]).exits(1);
    assert!(copied.err.contains("damaged"), "{copied:?}");
    assert!(
        !folder
            .join("elsewhere/nuncio.db")
            .metadata()
            .is_ok_and(|file| file.len() > 0)
    );
}

#[test]
fn postgresql_is_left_to_its_own_tools() {
    let folder = tempfile::tempdir().unwrap();
    let url = "postgres://nuncio:secret@db.example/nuncio";
    for words in [
        &["db", "backup", url, "copy.db"][..],
        &["db", "restore", "copy.db", url][..],
    ] {
        let refused = said(folder.path(), words).exits(2);
        assert!(refused.err.contains("pg_dump"), "{refused:?}");
        assert!(refused.err.contains("nuncio task export"), "{refused:?}");
        assert!(!refused.err.contains("secret"), "{refused:?}");
    }
}

fn lines(report: &Value) -> Vec<(String, String)> {
    let list = report.as_array().unwrap().iter();
    list.map(|check| {
        let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
        (
            format!("{} {}", text("status"), text("check")),
            text("message"),
        )
    })
    .collect()
}

#[test]
fn an_upgrade_is_foretold() {
    let server = Server::echo();
    server.send(&["hold", "--async"]).exits(0);
    let kept = server.crash();
    let folder = kept.path();
    let check = |more: &[&str]| {
        let words = [&["upgrade", "check", "-o", "json"], more].concat();
        said(folder, &words)
    };
    let told = lines(&check(&[]).exits(0).json());
    let kinds: Vec<&str> = told.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(
        kinds,
        ["ok program", "ok configuration", "ok database", "ok tasks"]
    );
    assert!(told[2].1.contains("nothing to carry over"), "{told:?}");
    assert!(told[3].1.starts_with("1 runs"), "{told:?}");

    std::fs::write(
        folder.join("old.toml"),
        "[server]\nlisten = \"127.0.0.1:0\"\nthreads = 4\n",
    )
    .unwrap();
    let obsolete = check(&["--config", "old.toml"]).exits(1).json();
    assert_eq!(obsolete[1]["status"], "error");
    let message = obsolete[1]["message"].as_str().unwrap();
    assert!(
        message.contains("old.toml:3: server.threads: unknown key"),
        "{message}"
    );

    std::fs::write(
        folder.join("new.toml"),
        "[store]\nurl = \"sqlite:fresh.db\"\n",
    )
    .unwrap();
    let fresh = lines(&check(&["--config", "new.toml"]).exits(0).json());
    assert!(fresh[2].1.contains("a start would make it"), "{fresh:?}");
    std::fs::write(
        folder.join("fresh.db"),
        "something else altogether, and long enough",
    )
    .unwrap();
    let foreign = check(&["--config", "new.toml"]).exits(1).json();
    assert_eq!(foreign[2]["status"], "error");
    assert!(
        foreign[2]["message"]
            .as_str()
            .unwrap()
            .contains("not a database of nuncio")
    );
    let moved = said(folder, &["db", "migrate", "nuncio-data", "-o", "json"])
        .exits(0)
        .json();
    assert_eq!(moved["version"], moved["versionBefore"]);
}
