//! The test agents of the case list, in one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nuncio_engine::{Agent, AgentError, AgentInfo, Input, Outcome, Pause, RunCx, RunFuture};
use nuncio_protocol::{AgentId, Artifact, Part};
use parking_lot::Mutex;

/// What a [`TestAgent`] does with a message.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// Answers with the same text.
    Echo,
    /// A chunk a second, this many, noticing its cancel.
    Slow(u64),
    /// A chunk a second for ever, deaf to its cancel.
    Deaf,
    /// Waits until canceled.
    Hold,
    /// Asks this many times, then repeats the last answer.
    Ask(usize),
    /// Asks for an authorisation once.
    Auth,
    /// Fails before or after its first event, the second text being secret.
    Fail {
        /// Whether an artifact comes first.
        after_event: bool,
    },
    /// Panics before or after its first event.
    Panic {
        /// Whether an artifact comes first.
        after_event: bool,
    },
    /// Comes to its end without result.
    Silent,
    /// "Hello", ", ", "world!" as pieces of one artifact.
    Chunk,
    /// This many one-byte chunks as fast as it can.
    Flood(u64),
    /// Appends to an artifact that does not exist.
    BadAppend,
    /// Replaces its first artifact by another content.
    Replace,
    /// Answers without a task.
    Message,
    /// Thinks this long, then answers without a task.
    SlowMessage(Duration),
    /// Will not do it.
    Reject,
    /// Hands off to another agent.
    HandOff(AgentId),
    /// Emits two statuses, then waits this long, then completes: for reading half-way.
    Status(Duration),
    /// Leaves a checkpoint, then holds; the next run echoes what it finds.
    Checkpoint,
}

/// What the agent has seen, for tests to look at.
#[derive(Debug, Default)]
pub struct Trace {
    /// Runs begun.
    pub runs: AtomicUsize,
    /// Runs going on at this moment.
    pub active: AtomicUsize,
    /// The most runs of all time at one moment.
    pub most_active: AtomicUsize,
    /// Cancels noticed.
    pub cancels: AtomicUsize,
    /// Texts in the order of their runs.
    pub texts: Mutex<Vec<String>>,
    /// The attempts of the runs, in order.
    pub attempts: Mutex<Vec<u64>>,
    /// The last input.
    pub input: Mutex<Option<Input>>,
}

/// An agent that behaves as told.
#[derive(Debug)]
pub struct TestAgent {
    info: AgentInfo,
    behaviour: Behaviour,
    /// What it has seen.
    pub trace: Arc<Trace>,
}

impl TestAgent {
    /// An agent with the id `agent`.
    pub fn new(behaviour: Behaviour) -> Self {
        Self::named("agent", behaviour)
    }

    /// An agent of that id.
    pub fn named(id: &str, behaviour: Behaviour) -> Self {
        let mut info = AgentInfo::new(id, id, "An agent for tests.");
        info.answers_directly = matches!(behaviour, Behaviour::Message | Behaviour::SlowMessage(_));
        Self {
            info,
            behaviour,
            trace: Arc::default(),
        }
    }

    /// The same agent, to be run again after a crash.
    #[must_use]
    pub fn resumable(mut self) -> Self {
        self.info.resumable = true;
        self
    }

    /// The same agent, refusing messages while it works.
    #[must_use]
    pub fn one_at_a_time(mut self) -> Self {
        self.info.queues_messages = false;
        self
    }

    /// The same agent, offering no webhooks.
    #[must_use]
    pub fn without_webhooks(mut self) -> Self {
        self.info.push_notifications = false;
        self
    }

    async fn act(&self, cx: &RunCx, input: Input) -> Result<Outcome, AgentError> {
        let text = input.message.text();
        match &self.behaviour {
            Behaviour::Echo => self.echo(cx, &text).await,
            Behaviour::Slow(seconds) => self.slow(cx, *seconds, true).await,
            Behaviour::Deaf => self.slow(cx, u64::MAX, false).await,
            Behaviour::Hold => {
                cx.cancellation().cancelled().await;
                self.trace.cancels.fetch_add(1, Ordering::SeqCst);
                Ok(Outcome::Done)
            }
            Behaviour::Ask(times) if input.turn() <= *times => {
                let question = format!("question {}", input.turn());
                Ok(Outcome::Paused(Pause::input(
                    cx.message(vec![Part::text(question)]),
                )))
            }
            Behaviour::Auth if input.turn() == 1 => {
                let prompt = cx.message(vec![Part::text("sign in please")]);
                Ok(Outcome::Paused(Pause::auth(prompt, "oauth2", None)))
            }
            Behaviour::Ask(_) | Behaviour::Auth => self.echo(cx, &text).await,
            Behaviour::Fail { after_event } => {
                self.first_event(cx, *after_event).await?;
                Err(AgentError::internal(
                    "connection to db://user:sk_secret_in_error lost",
                ))
            }
            Behaviour::Panic { after_event } => {
                self.first_event(cx, *after_event).await?;
                panic!("sk_secret_in_panic");
            }
            Behaviour::Silent => Err(AgentError::ended_without_result()),
            Behaviour::Chunk => {
                let pieces = ["Hello", ", ", "world!"];
                for (at, piece) in pieces.into_iter().enumerate() {
                    let artifact = Artifact::new("greeting", vec![Part::text(piece)]);
                    cx.chunk(artifact, at > 0, at == 2).await?;
                }
                Ok(Outcome::Done)
            }
            Behaviour::Flood(count) => {
                for _ in 0..*count {
                    cx.text("x").await?;
                }
                Ok(Outcome::Done)
            }
            Behaviour::BadAppend => {
                cx.chunk(Artifact::new("unknown", vec![Part::text("x")]), true, true)
                    .await?;
                Ok(Outcome::Done)
            }
            Behaviour::Replace => {
                cx.artifact(Artifact::new("first", vec![Part::text("old")]))
                    .await?;
                cx.artifact(Artifact::new("second", vec![Part::text("other")]))
                    .await?;
                cx.artifact(Artifact::new("first", vec![Part::text("new")]))
                    .await?;
                Ok(Outcome::Done)
            }
            Behaviour::Message => Ok(Outcome::Reply(cx.message(vec![Part::text(text)]))),
            Behaviour::SlowMessage(time) => {
                tokio::time::sleep(*time).await;
                Ok(Outcome::Reply(cx.message(vec![Part::text(text)])))
            }
            Behaviour::Reject => Ok(Outcome::Rejected("not my job".to_owned())),
            Behaviour::HandOff(agent) => {
                let message = cx.message(vec![Part::text(format!("please: {text}"))]);
                Ok(Outcome::HandOff {
                    agent: agent.clone(),
                    message,
                })
            }
            Behaviour::Status(time) => {
                cx.status("first").await?;
                cx.status("second").await?;
                tokio::time::sleep(*time).await;
                Ok(Outcome::Done)
            }
            Behaviour::Checkpoint => match &input.checkpoint {
                Some(found) => self.echo(cx, &format!("found {found}")).await,
                None => {
                    cx.checkpoint(&serde_json::json!({"step": 1}))?;
                    cx.status("checkpoint left").await?;
                    std::future::pending().await
                }
            },
        }
    }

    async fn echo(&self, cx: &RunCx, text: &str) -> Result<Outcome, AgentError> {
        cx.artifact(Artifact::new(cx.next_id(), vec![Part::text(text)]))
            .await?;
        Ok(Outcome::Done)
    }

    async fn first_event(&self, cx: &RunCx, wanted: bool) -> Result<(), AgentError> {
        if wanted {
            cx.text("half").await?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    async fn slow(&self, cx: &RunCx, seconds: u64, listens: bool) -> Result<Outcome, AgentError> {
        for second in 1..=seconds {
            cx.status(format!("second {second}")).await?;
            cx.text(format!("{second} ")).await?;
            let tick = tokio::time::sleep(Duration::from_secs(1));
            tokio::select! {
                () = tick => {}
                () = cx.cancellation().cancelled(), if listens => {
                    self.trace.cancels.fetch_add(1, Ordering::SeqCst);
                    return Ok(Outcome::Done);
                }
            }
        }
        Ok(Outcome::Done)
    }
}

/// Counts a run down when it ends, however it ends.
struct Active<'a>(&'a Trace);

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Agent for TestAgent {
    fn info(&self) -> &AgentInfo {
        &self.info
    }

    fn run<'a>(&'a self, cx: &'a RunCx, input: Input) -> RunFuture<'a> {
        Box::pin(async move {
            self.trace.runs.fetch_add(1, Ordering::SeqCst);
            let now = self.trace.active.fetch_add(1, Ordering::SeqCst) + 1;
            self.trace.most_active.fetch_max(now, Ordering::SeqCst);
            let _active = Active(&self.trace);
            self.trace.texts.lock().push(input.message.text());
            self.trace.attempts.lock().push(cx.attempt());
            *self.trace.input.lock() = Some(input.clone());
            self.act(cx, input).await
        })
    }
}
