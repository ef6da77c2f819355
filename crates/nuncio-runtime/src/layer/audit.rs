//! Writing down what agents have done.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nuncio_engine::{AgentError, Outcome, RunCx, SystemClock};
use nuncio_protocol::{Clock, Message};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::{Ended, Layer};
use crate::model::{ModelError, Usage};
use crate::tool::{ToolError, ToolOutput};

/// Writes one line of JSON when a run, a request to a model or a call of a tool has ended, whatever it came
/// to: in a file, or in the log under the target `nuncio::audit`.
///
/// A line has `at` (UTC), `what` (`run`, `model`, `tool`), `ended`, `tookMs`, `workspace`, `caller`, `agent`,
/// `context`, `task`, `attempt`, and `place` within other agents; a run its `message`, a model its `model`
/// and `usage`, a tool its `tool` and `call`; what failed its `error`, in the words of who failed. Nothing
/// else of what was said is in it unless [`content`](Self::content) says so.
///
/// Lines are appended in one write each, and the file is opened again when it has been moved away. What
/// cannot be written is told in the log; the work goes on.
///
/// ```no_run
/// use nuncio_runtime::layer::Audit;
///
/// let trail = Audit::to_file("audit.jsonl")?.content(false);
/// # let _ = trail;
/// # Ok::<_, std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Audit {
    file: Option<Trail>,
    content: bool,
    clock: Arc<dyn Clock>,
}

/// The target of lines in the log.
const TARGET: &str = "nuncio::audit";

impl Audit {
    /// Writes to the log.
    pub fn to_log() -> Self {
        Self {
            file: None,
            content: false,
            clock: Arc::new(SystemClock),
        }
    }

    /// Writes to a file, which is made if it is not there, for this user only.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn to_file(path: impl Into<PathBuf>) -> io::Result<Self> {
        Ok(Self {
            file: Some(Trail::open(path.into())?),
            ..Self::to_log()
        })
    }

    /// Whether lines have what was said too: messages that came in, the words with which runs ended,
    /// arguments and results of tools; no, unless this says so.
    #[must_use]
    pub fn content(mut self, content: bool) -> Self {
        self.content = content;
        self
    }

    /// The clock of the lines, instead of the machine's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    fn line(&self, cx: &RunCx, ended: &Ended<'_>) -> Line {
        let mut line = Line(Map::new());
        line.set("at", self.clock.now().to_string());
        let took = match ended {
            Ended::Run {
                message,
                result,
                took,
            } => {
                line.of_run(message, *result, self.content);
                took
            }
            Ended::Model { name, result, took } => {
                line.of_model(name, *result);
                took
            }
            Ended::Tool { call, result, took } => {
                line.set("what", "tool");
                line.set("tool", call.name.as_str());
                line.set("call", call.id.as_str());
                if self.content {
                    line.set("input", call.arguments.clone());
                }
                line.of_tool(*result, self.content);
                took
            }
        };
        line.of_place(cx, *took);
        line
    }
}

impl Layer for Audit {
    fn ended(&self, cx: &RunCx, ended: &Ended<'_>) {
        let line = Value::Object(self.line(cx, ended).0).to_string();
        match &self.file {
            None => tracing::info!(target: TARGET, "{line}"),
            Some(trail) => {
                if let Err(error) = trail.write(line) {
                    let path = trail.path.display();
                    tracing::error!(%error, "the audit file {path} is not written");
                }
            }
        }
    }
}

/// A line in the making.
struct Line(Map<String, Value>);

impl Line {
    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    fn of_place(&mut self, cx: &RunCx, took: Duration) {
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.set("tookMs", took);
        self.set("workspace", cx.caller().workspace.as_str());
        self.set("caller", cx.caller().id.as_str());
        self.set("agent", cx.agent().as_str());
        self.set("context", cx.context().as_str());
        self.set("task", cx.task().as_str());
        self.set("attempt", cx.attempt());
        if !cx.place().is_empty() {
            self.set("place", cx.place());
        }
    }

    fn of_run(
        &mut self,
        message: &Message,
        result: Option<&Result<Outcome, AgentError>>,
        content: bool,
    ) {
        self.set("what", "run");
        self.set("message", message.message_id.as_str());
        if content {
            self.set("input", message.text());
        }
        match result {
            None => self.set("ended", GIVEN_UP),
            Some(Err(error)) => {
                self.set("ended", FAILED);
                self.set("error", error.message());
            }
            Some(Ok(outcome)) => self.of_outcome(outcome, content),
        }
    }

    fn of_outcome(&mut self, outcome: &Outcome, content: bool) {
        let (ended, words) = match outcome {
            Outcome::Done => ("done", None),
            Outcome::Said(message) => ("done", Some(message.text())),
            Outcome::Reply(message) => ("replied", Some(message.text())),
            Outcome::Paused(pause) => ("paused", Some(pause.prompt.text())),
            Outcome::Rejected(why) => ("rejected", Some(why.clone())),
            Outcome::HandOff { agent, message } => {
                self.set("to", agent.as_str());
                ("handed_over", Some(message.text()))
            }
        };
        self.set("ended", ended);
        if let Some(words) = words.filter(|_| content) {
            self.set("output", words);
        }
    }

    fn of_model(&mut self, name: &str, result: Option<Result<&Usage, &ModelError>>) {
        self.set("what", "model");
        self.set("model", name);
        match result {
            None => self.set("ended", GIVEN_UP),
            Some(Ok(usage)) => {
                self.set("ended", "done");
                self.set("usage", json!(usage));
            }
            Some(Err(error)) => {
                self.set("ended", FAILED);
                self.set("error", error.kind());
            }
        }
    }

    fn of_tool(&mut self, result: Option<Result<&ToolOutput, &ToolError>>, content: bool) {
        match result {
            None => self.set("ended", GIVEN_UP),
            Some(Err(error)) => {
                self.set("ended", FAILED);
                self.set("error", error.message());
            }
            Some(Ok(output)) => {
                let (ended, given) = match output {
                    ToolOutput::Paused(pause) => ("paused", pause.prompt.text().into()),
                    ToolOutput::HandOff { agent, .. } => ("handed_over", agent.as_str().into()),
                    ToolOutput::Value(value) => ("done", value.clone()),
                    ToolOutput::Parts(parts) => {
                        let texts = parts.iter().filter_map(|part| part.as_text());
                        ("done", texts.collect::<Vec<_>>().join("\n").into())
                    }
                    ToolOutput::Later(_) => ("done", Value::Null),
                };
                self.set("ended", ended);
                if content {
                    self.set("output", given);
                }
            }
        }
    }
}

const FAILED: &str = "failed";
const GIVEN_UP: &str = "given_up";

/// A file that lines are appended to.
#[derive(Debug)]
struct Trail {
    path: PathBuf,
    file: Mutex<File>,
}

impl Trail {
    fn open(path: PathBuf) -> io::Result<Self> {
        let file = Mutex::new(open(&path)?);
        Ok(Self { path, file })
    }

    fn write(&self, mut line: String) -> io::Result<()> {
        line.push('\n');
        let mut file = self.file.lock();
        if !is_at(&file, &self.path)? {
            *file = open(&self.path)?;
        }
        file.write_all(line.as_bytes())
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Whether a file still has this path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let open = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a file still has this path.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> io::Result<bool> {
    path.try_exists()
}
