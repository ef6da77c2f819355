//! The examples of the crate, run as programs and asked over the network.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::support::{Process, Said, exchange, line_from, nuncio, run};

/// Examples are built along with the tests, beside the program.
fn example(name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_nuncio"));
    let built = program.with_file_name("examples").join(name);
    assert!(built.exists(), "{} is not built", built.display());
    built
}

struct Example {
    url: String,
    folder: TempDir,
    process: Process,
}

impl Example {
    fn start(name: &str, arguments: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), name, arguments)
    }

    fn start_in(folder: TempDir, name: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(example(name));
        command
            .args(arguments)
            .current_dir(folder.path())
            .env("NUNCIO__SERVER__LISTEN", "127.0.0.1:0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = Process::start(&mut command);
        let line = line_from(process.stdout.take().unwrap(), "ready ");
        let url = line.trim_start_matches("ready ").trim().to_owned();
        Self {
            url,
            folder,
            process,
        }
    }

    fn send(&self, more: &[&str]) -> Said {
        let mut command = nuncio(self.folder.path());
        command.args(["send", "-a", &self.url]).args(more);
        run(command, "")
    }
}

#[test]
fn hello_is_an_agent_in_three_lines() {
    let hello = Example::start("hello", &[]);
    assert!(
        hello
            .send(&["world"])
            .exits(0)
            .out
            .contains("Hello, world!")
    );
    let card = exchange(&hello.url, "GET", "/.well-known/agent-card.json", &[], "").json();
    assert_eq!(card["name"], "Hello");
    assert_eq!(card["capabilities"]["streaming"], true);
}

#[test]
fn streaming_says_word_by_word() {
    let reader = Example::start("streaming", &[]);
    let said = reader
        .send(&["one two three", "-o", "json", "--stream"])
        .exits(0);
    let pieces = said.out.matches("artifactUpdate").count();
    assert!(pieces >= 3, "{}", said.out);
}

/// The answer is given after the program has been killed and started again.
#[test]
fn question_goes_on_after_a_restart() {
    let booking = Example::start("question", &[]);
    let asked = booking.send(&["a table at eight"]);
    assert!(asked.out.contains("For how many?"), "{}", asked.out);
    let task = asked.field("Task ID");
    let Example {
        folder, process, ..
    } = booking;
    drop(process);
    let booking = Example::start_in(folder, "question", &[]);
    let done = booking.send(&["--task-id", &task, "four"]).exits(0);
    assert!(
        done.out.contains("Booked: a table at eight, for four."),
        "{}",
        done.out
    );
}

#[test]
fn tool_is_called_by_a_model() {
    let orders = Example::start("tool", &[]);
    let said = orders.send(&["ORD-1042"]).exits(0);
    assert!(
        said.out
            .contains("Your order is on its way, arrives tomorrow."),
        "{}",
        said.out
    );
}

/// The question of an agent behind an agent reaches the user, and the answer the agent behind.
#[test]
fn delegation_passes_questions_on() {
    let expert = Example::start("question", &[]);
    let desk = Example::start("delegation", &[&expert.url, "127.0.0.1:0"]);
    let asked = desk.send(&["a table at nine"]);
    assert!(asked.out.contains("For how many?"), "{}", asked.out);
    let done = desk
        .send(&["--task-id", &asked.field("Task ID"), "two"])
        .exits(0);
    assert!(
        done.out.contains("Booked: a table at nine, for two."),
        "{}",
        done.out
    );
}

#[test]
fn embedding_is_an_agent_in_an_axum_application() {
    let application = Example::start("embedding", &["127.0.0.1:0"]);
    let root = exchange(&application.url, "GET", "/", &[], "");
    assert!(root.body.contains("an agent at /a2a"), "{}", root.body);
    let url = format!("{}/a2a", application.url);
    let mut command = nuncio(application.folder.path());
    command.args(["send", "-a", &url, "you"]);
    let said = run(command, "").exits(0);
    assert!(said.out.contains("Hello, you!"), "{}", said.out);
}
