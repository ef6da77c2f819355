//! The agent that a program is.

use std::fmt;
use std::io;

use nuncio_engine::{Agent, AgentError, AgentInfo, Input, Outcome, RunCx, RunFuture};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use super::child::Child;
use super::kept::Kept;
use super::lines::Line;
use super::tail::Masks;
use super::{ProcessMode, ProcessSettings};
use crate::foreign::{CANCEL, Stop, Turn, told};

/// An agent that another program is: JSON lines on its input and output.
///
/// A run ends with the event that says so, and its program with it, unless it is kept. A program
/// that ends early, or says what is no event, fails the task. A cancel is told to the program;
/// one that does not end gets SIGTERM, then SIGKILL, and with it everything it has started.
pub struct ProcessAgent {
    info: AgentInfo,
    settings: ProcessSettings,
    masks: Masks,
    room: Semaphore,
    kept: Kept,
}

impl ProcessAgent {
    /// The agent of a program.
    pub fn new(mut info: AgentInfo, settings: ProcessSettings) -> Self {
        info.answers_directly = false;
        Self {
            info,
            masks: Masks::of(&settings.env),
            room: Semaphore::new(settings.max_processes.clamp(1, Semaphore::MAX_PERMITS)),
            kept: Kept::default(),
            settings,
        }
    }

    fn start(&self) -> io::Result<Child> {
        Child::start(&self.settings, &self.masks, self.info.id.as_str())
    }

    fn not_started(&self, error: &io::Error) -> AgentError {
        tracing::error!(agent.id = %self.info.id, %error, "the program does not start");
        AgentError::new(format!("failed to start the agent's program: {error}"))
    }

    /// A program of its own for each run.
    async fn run_once(&self, run: &Run<'_>) -> Result<Outcome, AgentError> {
        let Some(_room) = run.unless_canceled(self.room.acquire()).await else {
            return Ok(Outcome::Done);
        };
        let mut child = self.start().map_err(|error| self.not_started(&error))?;
        match run.play(&mut child).await {
            Ok(outcome) => Ok(outcome),
            Err(why) => run.failed(why, child).await,
        }
    }

    /// The kept program.
    async fn run_next(&self, run: &Run<'_>) -> Result<Outcome, AgentError> {
        let started = run.unless_canceled(async {
            let mut borrowed = self.kept.borrow().await;
            let child = borrowed.child(|| self.start()).await;
            child.map(|child| (borrowed, child))
        });
        let Some(started) = started.await else {
            return Ok(Outcome::Done);
        };
        let (borrowed, mut child) = started.map_err(|error| self.not_started(&error))?;
        match run.play(&mut child).await {
            Ok(outcome) => {
                borrowed.give_back(child);
                Ok(outcome)
            }
            Err(Fault::Failed(message)) => {
                borrowed.give_back(child);
                Err(AgentError::new(message))
            }
            Err(why) => run.failed(why, child).await,
        }
    }
}

impl fmt::Debug for ProcessAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessAgent")
            .field("id", &self.info.id)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Agent for ProcessAgent {
    fn info(&self) -> &AgentInfo {
        &self.info
    }

    fn run<'a>(&'a self, cx: &'a RunCx, input: Input) -> RunFuture<'a> {
        Box::pin(async move {
            let run = Run {
                turn: Turn {
                    cx,
                    named: self.settings.mode == ProcessMode::Persistent,
                },
                message: told(cx, &input).to_string(),
                settings: &self.settings,
            };
            match self.settings.mode {
                ProcessMode::PerTask => self.run_once(&run).await,
                ProcessMode::Persistent => self.run_next(&run).await,
            }
        })
    }
}

/// Why a program gives no outcome.
enum Fault {
    /// It says that the task has failed.
    Failed(String),
    /// A line of it is not as it must be; the number of the line, and why.
    Line(usize, String),
    /// It ended without saying how the task ends.
    Ended,
    /// It reads none of what it is told.
    Deaf,
    /// Its output cannot be read.
    Unreadable(io::Error),
}

/// One message being answered by a program.
struct Run<'a> {
    turn: Turn<'a>,
    message: String,
    settings: &'a ProcessSettings,
}

impl Run<'_> {
    async fn unless_canceled<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.turn.cx.cancellation().cancelled() => None,
        }
    }

    /// Tells the message and plays what comes of it.
    async fn play(&self, child: &mut Child) -> Result<Outcome, Fault> {
        if !child.tell(self.message.clone()) {
            return Err(Fault::Deaf);
        }
        let canceled = self.turn.cx.cancellation();
        let mut noticed = None;
        loop {
            tokio::select! {
                biased;
                () = canceled.cancelled(), if noticed.is_none() => {
                    child.tell(CANCEL.to_owned());
                    noticed = Some(Instant::now() + self.settings.notice);
                }
                line = child.line() => {
                    let Some(line) = line.map_err(Fault::Unreadable)? else {
                        return Err(Fault::Ended);
                    };
                    if let Some(outcome) = self.take(line, child.read).await? {
                        return Ok(outcome);
                    }
                }
                () = sleep_until(noticed.unwrap_or_else(Instant::now)), if noticed.is_some() => {
                    child.terminate();
                    return Err(Fault::Ended);
                }
            }
        }
    }

    /// Plays a line.
    async fn take(&self, line: Line, number: usize) -> Result<Option<Outcome>, Fault> {
        let line = match line {
            Line::Whole(line) => line,
            Line::Cut(_) => {
                let why = format!("is longer than {} bytes", self.settings.max_line_bytes);
                return Err(Fault::Line(number, why));
            }
        };
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        let event = self.turn.read(&line);
        let event = event.map_err(|error| Fault::Line(number, error.to_string()))?;
        self.turn.play(event).await.map_err(|stop| match stop {
            Stop::Failed(message) => Fault::Failed(message),
            Stop::Refused(error) => Fault::Line(number, format!("is refused: {error}")),
        })
    }

    /// What a fault means for the task.
    async fn failed(&self, fault: Fault, child: Child) -> Result<Outcome, AgentError> {
        if self.turn.cx.cancellation().is_cancelled() {
            return Ok(Outcome::Done);
        }
        Err(AgentError::new(match fault {
            Fault::Failed(message) => message,
            Fault::Line(number, why) => {
                format!("line {number} of the agent's program {why}")
            }
            Fault::Ended => {
                let how = child.last_words().await;
                format!("the agent's program ended before its task did {how}")
            }
            Fault::Deaf => "the agent's program does not read what it is told".to_owned(),
            Fault::Unreadable(error) => format!("failed to read from the agent's program: {error}"),
        }))
    }
}
