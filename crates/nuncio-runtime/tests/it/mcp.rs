//! MCP servers that we did not write (`scripts/mcp-servers`): `time` and `everything`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nuncio_egress::{Egress, EgressPolicy};
use nuncio_protocol::TaskState;
use nuncio_runtime::ModelAgent;
use nuncio_runtime::mcp::{McpServer, McpSettings, McpTransport};
use nuncio_runtime::model::{FakeModel, ToolResult, Turn, UserPart};
use url::Url;

use crate::network::until;
use crate::support::{Hosted, fake, said, texts};

#[expect(
    clippy::disallowed_methods,
    reason = "scripts/mcp-servers says by the environment where they are"
)]
fn folder() -> Option<PathBuf> {
    let folder = std::env::var("NUNCIO_TEST_MCP").ok();
    let skipped = std::env::var("SKIP_MCP").is_ok_and(|skip| skip == "1");
    assert!(
        folder.is_some() || skipped,
        "NUNCIO_TEST_MCP is not set: run it with scripts/mcp-servers, or set SKIP_MCP=1 to do without"
    );
    folder.map(PathBuf::from)
}

#[expect(clippy::disallowed_methods, reason = "a program needs to find node")]
fn environment() -> BTreeMap<String, String> {
    let path = std::env::var("PATH").unwrap();
    BTreeMap::from([
        ("PATH".to_owned(), path),
        ("OURS".to_owned(), "yes".to_owned()),
    ])
}

fn time(folder: &Path) -> McpSettings {
    let program = folder.join("time/bin/mcp-server-time");
    let command = vec![program.to_str().unwrap().to_owned()];
    McpSettings::new("time", McpTransport::stdio(command, environment()))
}

fn everything_program(folder: &Path) -> String {
    let program = folder.join("everything/node_modules/.bin/mcp-server-everything");
    program.to_str().unwrap().to_owned()
}

fn everything(folder: &Path) -> McpSettings {
    let command = vec![everything_program(folder), "stdio".to_owned()];
    McpSettings::new("everything", McpTransport::stdio(command, environment()))
}

/// A model that makes one call and says what it gave.
fn calling(tool: &str, args: &str) -> FakeModel {
    fake(
        "fake",
        &format!(
            "[[rules]]\nwhen = {{ turn = 1 }}\nreply = [{{ tool = {{ name = '{tool}', arguments = {args} }} }}]\n\
         [[rules]]\notherwise = true\nreply = [{{ text = '{{result}}' }}]"
        ),
    )
}

fn hosted(model: &FakeModel, server: McpServer) -> Hosted {
    let agent = ModelAgent::builder("helper")
        .model(model.clone())
        .source(Arc::new(server));
    Hosted::new(Arc::new(agent.build().unwrap()))
}

fn turns(model: &FakeModel) -> Vec<Turn> {
    model.requests().pop().unwrap().turns
}

fn result(model: &FakeModel) -> ToolResult {
    let results = turns(model).into_iter().find_map(|turn| match turn {
        Turn::Tools(results) => Some(results),
        _ => None,
    });
    results.unwrap().remove(0)
}

#[tokio::test]
async fn tools_are_listed_and_called() {
    let Some(folder) = folder() else { return };
    let args = "{ source_timezone = 'Etc/UTC', time = '12:00', target_timezone = 'Asia/Tokyo' }";
    let model = calling("convert_time", args);
    let task = hosted(&model, McpServer::new(time(&folder)))
        .task("x")
        .await;
    assert_eq!(task.status.state, TaskState::Completed, "{}", said(&task));
    assert!(texts(&task)[0].contains("21:00"), "{:?}", texts(&task));
    let tools = &model.requests()[0].tools;
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["get_current_time", "convert_time"]);
    assert!(tools[0].read_only && tools[0].parallel && !tools[0].needs_approval);
}

/// A server that says so is asked for its tools again, and only then.
#[tokio::test]
async fn tools_that_have_changed_are_listed_again() {
    let Some(folder) = folder() else { return };
    let python = folder.join("time/bin/python");
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/learning.py");
    let command = vec![python.to_str().unwrap().to_owned(), program.to_owned()];
    let transport = McpTransport::stdio(command, environment());
    let server = McpServer::new(McpSettings::new("learning", transport));

    let learning = calling("learn", "{}");
    hosted(&learning, server.clone()).task("x").await;
    assert_eq!(learning.requests()[0].tools.len(), 1);
    until(async || server.list().await.unwrap().len() == 2).await;
    let doubling = calling("double", "{ number = 4 }");
    hosted(&doubling, server).task("x").await;
    assert!(result(&doubling).content.contains('8'));
}

/// What does not fit the server's schema does not reach it; what it says is wrong goes to the model.
#[tokio::test]
async fn errors_go_to_the_model() {
    let Some(folder) = folder() else { return };
    for (args, wanted) in [
        ("{ timezone = 7 }", "at /timezone:"),
        ("{ timezone = 'Mars/North' }", "Mars/North"),
    ] {
        let model = calling("get_current_time", args);
        hosted(&model, McpServer::new(time(&folder)))
            .task("x")
            .await;
        let result = result(&model);
        assert!(
            result.is_error && result.content.contains(wanted),
            "{}",
            result.content
        );
    }
}

#[tokio::test]
async fn tools_are_chosen_renamed_and_approved() {
    let Some(folder) = folder() else { return };
    let mut settings = time(&folder);
    settings.allow = Some(vec!["get_current_time".to_owned()]);
    settings.prefix = Some("clock_".to_owned());
    settings.approve = vec!["get_current_time".to_owned()];
    let model = calling("clock_get_current_time", "{ timezone = 'Etc/UTC' }");
    let hosted = hosted(&model, McpServer::new(settings));
    let waiting = hosted.task("x").await;
    assert_eq!(
        waiting.status.state,
        TaskState::InputRequired,
        "{}",
        said(&waiting)
    );
    assert_eq!(model.requests()[0].tools.len(), 1);
    let done = hosted.answer(&waiting.id, "yes").await;
    assert!(texts(&done)[0].contains("Etc/UTC"), "{:?}", texts(&done));
}

/// A program gets the environment it is given and nothing else of ours.
#[tokio::test]
async fn a_program_sees_its_own_environment_only() {
    let Some(folder) = folder() else { return };
    let model = calling("get-env", "{}");
    hosted(&model, McpServer::new(everything(&folder)))
        .task("x")
        .await;
    let env = result(&model).content;
    assert!(env.contains("\"OURS\": \"yes\""), "{env}");
    assert!(
        !env.contains("CARGO") && !env.contains("NUNCIO_TEST_MCP"),
        "{env}"
    );
}

#[tokio::test]
async fn structured_content_and_images_come_through() {
    let Some(folder) = folder() else { return };
    let server = McpServer::new(everything(&folder));
    let model = calling("get-structured-content", "{ location = 'Chicago' }");
    hosted(&model, server.clone()).task("x").await;
    let content: serde_json::Value = serde_json::from_str(&result(&model).content).unwrap();
    assert!(content["temperature"].is_number(), "{content}");

    let model = calling("get-tiny-image", "{}");
    hosted(&model, server).task("x").await;
    let Some(Turn::User(files)) = turns(&model).pop() else {
        panic!("{:?}", turns(&model))
    };
    assert!(
        matches!(&files[0], UserPart::File { media_type, bytes, .. } if media_type == "image/png" && !bytes.is_empty())
    );
}

/// What the server asks the user pauses the task; the answer goes to the server.
#[tokio::test]
async fn elicitation_pauses_the_task() {
    let Some(folder) = folder() else { return };
    for (answer, wanted) in [("Ann", "Ann"), ("no", "decline")] {
        let model = calling("trigger-elicitation-request", "{}");
        let hosted = hosted(&model, McpServer::new(everything(&folder)));
        let waiting = hosted.task("x").await;
        assert_eq!(
            waiting.status.state,
            TaskState::InputRequired,
            "{}",
            said(&waiting)
        );
        assert!(!said(&waiting).is_empty());
        let done = hosted.answer(&waiting.id, answer).await;
        assert_eq!(done.status.state, TaskState::Completed, "{}", said(&done));
        assert!(
            result(&model).content.contains(wanted),
            "{}",
            result(&model).content
        );
    }
}

/// Stands between us and the server, keeps what we say to it, and ends with it.
const BETWEEN: &str = r#"
import os, subprocess, sys, threading
notes, program = sys.argv[1:]
server = subprocess.Popen([program, "stdio"], stdin=subprocess.PIPE)
with open(notes + "/pids", "a") as pids:
    pids.write(f"{server.pid}\n")
def pass_on():
    with open(notes + "/said", "a") as said:
        for line in sys.stdin:
            server.stdin.write(line.encode())
            server.stdin.flush()
            said.write(line)
            said.flush()
    server.stdin.close()
threading.Thread(target=pass_on, daemon=True).start()
server.wait()
os._exit(0)
"#;

fn watched(folder: &Path, notes: &Path) -> McpSettings {
    let program = everything_program(folder);
    let command = ["python3", "-c", BETWEEN, notes.to_str().unwrap(), &program];
    let command = command.map(str::to_owned).to_vec();
    McpSettings::new("everything", McpTransport::stdio(command, environment()))
}

fn note(notes: &Path, name: &str) -> String {
    std::fs::read_to_string(notes.join(name)).unwrap_or_default()
}

/// Kills the server when the call of a long operation has reached it.
async fn kill_in_the_middle(notes: &Path) {
    while !note(notes, "said").contains("trigger-long-running-operation") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let pid = note(notes, "pids").lines().next().unwrap().to_owned();
    let killed = Command::new("kill").args(["-9", &pid]).status().unwrap();
    assert!(killed.success());
}

const LONG: &str = "{ duration = 1, steps = 1 }";

/// A server that dies in the middle of a call that changes nothing: it is started again, and the call
/// is made again.
#[tokio::test]
async fn a_server_that_dies_is_started_again() {
    let Some(folder) = folder() else { return };
    let notes = tempfile::tempdir().unwrap();
    let model = calling("trigger-long-running-operation", LONG);
    let hosted = hosted(&model, McpServer::new(watched(&folder, notes.path())));
    let (task, ()) = tokio::join!(hosted.task("x"), kill_in_the_middle(notes.path()));
    assert_eq!(task.status.state, TaskState::Completed, "{}", said(&task));
    let result = result(&model);
    assert!(
        !result.is_error && result.content.contains("completed"),
        "{}",
        result.content
    );
    assert_eq!(note(notes.path(), "pids").lines().count(), 2);
}

/// If the call may change something, the model is told that it is not known; the next call works.
#[tokio::test]
async fn a_call_that_may_have_happened_is_not_repeated() {
    let Some(folder) = folder() else { return };
    let notes = tempfile::tempdir().unwrap();
    let mut settings = watched(&folder, notes.path());
    settings.trust_hints = false;
    let server = McpServer::new(settings);
    let model = calling("trigger-long-running-operation", LONG);
    let first = hosted(&model, server.clone());
    let (task, ()) = tokio::join!(first.task("x"), kill_in_the_middle(notes.path()));
    assert_eq!(task.status.state, TaskState::Completed, "{}", said(&task));
    let told = result(&model);
    assert!(
        told.is_error && told.content.contains("not known"),
        "{}",
        told.content
    );
    assert_eq!(note(notes.path(), "pids").lines().count(), 1);

    let model = calling("get-sum", "{ a = 2, b = 3 }");
    hosted(&model, server).task("x").await;
    assert!(
        result(&model).content.contains('5'),
        "{}",
        result(&model).content
    );
    assert_eq!(note(notes.path(), "pids").lines().count(), 2);
}

/// Without the server the run goes on without its tools.
#[tokio::test]
async fn a_server_that_cannot_be_started_is_done_without() {
    let transport = McpTransport::stdio(vec!["/nothing/here".to_owned()], BTreeMap::new());
    let server = McpServer::new(McpSettings::new("none", transport));
    let error = server.list().await.unwrap_err();
    assert_eq!(error.message(), "the MCP server none cannot be reached");
    let model = fake(
        "fake",
        "[[rules]]\notherwise = true\nreply = [{ text = 'alone' }]",
    );
    assert_eq!(texts(&hosted(&model, server).task("x").await), ["alone"]);
}

/// A server that does not speak is given up.
#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    let command = ["sleep", "600"].map(str::to_owned).to_vec();
    let mut settings = McpSettings::new("mute", McpTransport::stdio(command, environment()));
    settings.connect_timeout = Duration::from_millis(100);
    let error = McpServer::new(settings).list().await.unwrap_err();
    assert_eq!(
        error.message(),
        "the MCP server mute did not answer in time"
    );
}

/// `everything` on streamable HTTP; ended when dropped.
struct Service {
    process: Child,
    url: Url,
}

impl Service {
    fn start(folder: &Path, port: u16) -> Self {
        let process = Command::new(everything_program(folder))
            .arg("streamableHttp")
            .env("PORT", port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let url = Url::parse(&format!("http://127.0.0.1:{port}/mcp")).unwrap();
        Self { process, url }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Over HTTP too, and after a restart of the service between two calls.
#[tokio::test]
async fn a_service_is_called_over_http_and_again_after_its_restart() {
    let Some(folder) = folder() else { return };
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let service = Service::start(&folder, port);
    let egress = Egress::new(EgressPolicy::open()).unwrap();
    let transport = McpTransport::http(service.url.clone(), Default::default(), egress);
    let server = McpServer::new(McpSettings::new("everything", transport));
    let sum = async |server: McpServer| {
        let model = calling("get-sum", "{ a = 40, b = 2 }");
        let task = hosted(&model, server).task("x").await;
        assert_eq!(task.status.state, TaskState::Completed, "{}", said(&task));
        result(&model).content
    };
    let first = sum(server.clone()).await;
    assert!(first.contains("42"), "{first}");
    drop(service);
    let _service = Service::start(&folder, port);
    let second = sum(server).await;
    assert!(second.contains("42"), "{second}");
}

/// Which places may be reached is the policy's to say, for MCP too.
#[tokio::test]
async fn a_service_in_a_private_network_is_refused() {
    let egress = Egress::new(EgressPolicy::default()).unwrap();
    let url = Url::parse("http://127.0.0.1:9/mcp?token=t0ken").unwrap();
    let server = McpServer::new(McpSettings::new(
        "s",
        McpTransport::http(url, Default::default(), egress),
    ));
    assert!(!format!("{server:?}").contains("t0ken"));
    assert_eq!(
        server.list().await.unwrap_err().message(),
        "the MCP server s cannot be reached"
    );
}
