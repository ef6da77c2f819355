//! Faults of the machine: a full, a broken, a read-only disk, and no more files. Each is told as
//! something to try again, loses nothing, and heals by itself.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::report::Report;
use crate::servers::{Recipe, Server, send};

/// R05, on SQLite.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r05_a_disk_that_fails_loses_nothing_and_heals() {
    let mut report = Report::new("disk-faults", "R05");
    let folder = tempfile::tempdir().unwrap();
    let fault = folder.path().join("fault");
    let recipe = Recipe::new(&folder.path().join("server"), "")
        .with(
            "LD_PRELOAD",
            failing_disk(folder.path()).display().to_string(),
        )
        .with("POWER_LOSS_FAULT", fault.display().to_string());
    let server = recipe.start();
    let mut acknowledged = Acknowledged::default();
    for round in ["full", "broken", "read-only"] {
        acknowledged.sends(&server, 10).await;
        std::fs::write(&fault, round).unwrap();
        server.comes_to_be_ready(false).await;
        acknowledged.is_refused(&server, 5).await;
        std::fs::remove_file(&fault).unwrap();
        server.comes_to_be_ready(true).await;
        acknowledged.sends(&server, 10).await;
    }
    // What the process holds and the disk does not, a kill shows.
    let mut server = server;
    server.restart();
    acknowledged.are_there(&server).await;
    report.set("acknowledged", acknowledged.ids.len());
    report.set("refused", acknowledged.refused);
    server.kill();
    recipe.check_database();
    report.passed();
}

/// R05: no file can be opened, and no connection be taken, until there is room again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r05_a_server_without_files_heals() {
    let mut report = Report::new("no-more-files", "R05");
    let folder = tempfile::tempdir().unwrap();
    let recipe = Recipe::new(folder.path(), "");
    let mut server = recipe.start();
    let mut acknowledged = Acknowledged::default();
    acknowledged.sends(&server, 10).await;
    // No number below is free.
    server.limit_files(3);
    for n in 0..5 {
        // Not taken, or not answered; a task is there only if its reply says so.
        let address = server.address();
        let id = format!("none {n}");
        let reply = tokio::task::spawn_blocking(move || send(address, &id, "go"));
        if let Some((200, reply)) = reply.await.unwrap() {
            acknowledged.note(&reply);
        } else {
            acknowledged.refused += 1;
        }
    }
    assert_ne!(acknowledged.refused, 0, "there was room for a connection");
    server.limit_files(4_096);
    server.comes_to_be_ready(true).await;
    acknowledged.sends(&server, 10).await;
    server.restart();
    acknowledged.are_there(&server).await;
    report.set("acknowledged", acknowledged.ids.len());
    report.set("refused", acknowledged.refused);
    server.kill();
    recipe.check_database();
    report.passed();
}

/// Tasks that a server has said are there.
#[derive(Default)]
struct Acknowledged {
    ids: Vec<String>,
    sent: usize,
    refused: usize,
}

impl Acknowledged {
    async fn send(&mut self, server: &Server) -> (u16, Value) {
        let (address, id) = (server.address(), format!("message {}", self.sent));
        self.sent += 1;
        let reply = tokio::task::spawn_blocking(move || send(address, &id, "go"));
        reply.await.unwrap().expect("an answer")
    }

    fn note(&mut self, reply: &Value) {
        self.ids
            .push(reply["task"]["id"].as_str().unwrap().to_owned());
    }

    /// Sends that have to work.
    async fn sends(&mut self, server: &Server, count: usize) {
        for _ in 0..count {
            let (status, reply) = self.send(server).await;
            assert_eq!(status, 200, "{reply}");
            self.note(&reply);
        }
    }

    /// Sends that have to be refused as something to try again.
    async fn is_refused(&mut self, server: &Server, count: usize) {
        for _ in 0..count {
            let (status, reply) = self.send(server).await;
            assert_eq!(status, 503, "{reply}");
            assert_eq!(reply["error"]["status"], "UNAVAILABLE", "{reply}");
            self.refused += 1;
        }
    }

    /// Looks for every one of them, until it has ended.
    async fn are_there(&self, server: &Server) {
        for id in &self.ids {
            let mut patience = 0..600;
            loop {
                let (status, body) = server.get(&format!("/tasks/{id}")).expect("an answer");
                assert_eq!(status, 200, "{id} is lost: {body}");
                if body.contains("TASK_STATE_COMPLETED") {
                    break;
                }
                assert!(patience.next().is_some(), "{body}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// The library that makes the disk of a process fail, freshly compiled.
fn failing_disk(folder: &Path) -> PathBuf {
    let library = folder.join("power_loss.so");
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../nuncio-store/tests/it/power_loss.c"
    );
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"])
        .args([library.as_os_str(), source.as_ref()])
        .status();
    assert!(compiled.unwrap().success());
    library
}
