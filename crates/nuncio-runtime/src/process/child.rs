//! A running program: started, spoken to, and ended for certain.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::ProcessSettings;
use super::group::{self, Group};
use super::lines::{Line, Lines};
use super::tail::{Masks, Tail};

/// How long output is awaited after the program has ended: what it started may hold the pipe open.
const DRAIN: Duration = Duration::from_secs(1);

/// Lines that may wait for the program to read them.
const UNREAD_LINES: usize = 4;

/// How long a line of its errors may be before it is cut, in bytes.
const MAX_ERROR_LINE: usize = 64 << 10;

/// A program. Dropping it ends it: its input ends, then it gets SIGTERM, then SIGKILL.
pub(super) struct Child {
    input: mpsc::Sender<String>,
    output: Lines<ChildStdout>,
    /// Lines read so far.
    pub(super) read: usize,
    tail: Arc<Tail>,
    errors: JoinHandle<()>,
    ended: watch::Receiver<Option<io::Result<ExitStatus>>>,
    terminate: CancellationToken,
    end: DropGuard,
}

impl Child {
    /// Starts a program.
    ///
    /// # Errors
    /// If the system cannot.
    pub(super) fn start(
        settings: &ProcessSettings,
        masks: &Masks,
        agent: &str,
    ) -> io::Result<Self> {
        let mut child = command(settings).spawn()?;
        let group = Group::of(child.id());
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("the program has no pipes"));
        };
        let (input, told) = mpsc::channel(UNREAD_LINES);
        tokio::spawn(write(told, stdin));
        let (end, terminate) = (CancellationToken::new(), CancellationToken::new());
        let (exit, ended) = watch::channel(None);
        let supervised = Supervised {
            child,
            group,
            end: end.clone(),
            terminate: terminate.clone(),
            notice: settings.notice,
            grace: settings.grace,
        };
        tokio::spawn(supervised.until_ended(exit));
        let tail = Arc::new(Tail::default());
        let errors = Errors {
            lines: Lines::new(stderr, MAX_ERROR_LINE),
            tail: Arc::clone(&tail),
            masks: masks.clone(),
            agent: agent.to_owned(),
        };
        Ok(Self {
            input,
            output: Lines::new(stdout, settings.max_line_bytes),
            read: 0,
            tail,
            errors: tokio::spawn(errors.read(ended.clone())),
            ended,
            terminate,
            end: end.drop_guard(),
        })
    }

    /// Writes a line to its input, and says whether there is room. One that has closed its input
    /// shows what that means at its output.
    pub(super) fn tell(&self, line: String) -> bool {
        !matches!(self.input.try_send(line), Err(TrySendError::Full(_)))
    }

    /// The next line of its output; `None` once it has ended. Dropping the future loses nothing.
    pub(super) async fn line(&mut self) -> io::Result<Option<Line>> {
        let line = tokio::select! {
            biased;
            line = self.output.next() => line?,
            () = drained(self.ended.clone()) => None,
        };
        self.read += usize::from(line.is_some());
        Ok(line)
    }

    /// Sends SIGTERM now, and SIGKILL after the grace.
    pub(super) fn terminate(&self) {
        self.terminate.cancel();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// How it ended, with what it said last. One that only says nothing more is ended.
    pub(super) async fn last_words(mut self) -> String {
        drop((self.input, self.end));
        let status = match self.ended.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(Ok(status))) => status.to_string(),
            _ => "its exit status is unknown".to_owned(),
        };
        let _ = self.errors.await;
        format!("({status}){}", self.tail.told())
    }
}

fn command(settings: &ProcessSettings) -> Command {
    let (program, arguments) = match settings.command.split_first() {
        Some((program, arguments)) => (program.as_str(), arguments),
        None => ("", &[][..]),
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(&settings.inherited)
        .envs(&settings.env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if let Some(folder) = &settings.folder {
        command.current_dir(folder);
    }
    group::lead(&mut command);
    command
}

/// Writes lines until there are no more, then ends the input.
async fn write(mut told: mpsc::Receiver<String>, mut stdin: ChildStdin) {
    while let Some(mut line) = told.recv().await {
        line.push('\n');
        // A program that has closed its input or ended shows so at its output.
        if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

/// Waits until the program has ended and its pipes have had time to be read.
async fn drained(mut ended: watch::Receiver<Option<io::Result<ExitStatus>>>) {
    let _ = ended.wait_for(Option::is_some).await;
    sleep(DRAIN).await;
}

/// What waits for the end of a program, or brings it about.
struct Supervised {
    child: tokio::process::Child,
    group: Group,
    /// Nobody needs it any more.
    end: CancellationToken,
    /// It is to get SIGTERM at once.
    terminate: CancellationToken,
    notice: Duration,
    grace: Duration,
}

impl Supervised {
    async fn until_ended(mut self, exit: watch::Sender<Option<io::Result<ExitStatus>>>) {
        let status = tokio::select! {
            status = self.child.wait() => status,
            () = due(&self.end, &self.terminate, self.notice) => self.make_end().await,
        };
        // What the program has started and left behind ends with it.
        drop(self.group);
        exit.send_replace(Some(status));
    }

    async fn make_end(&mut self) -> io::Result<ExitStatus> {
        self.group.terminate();
        if let Ok(status) = timeout(self.grace, self.child.wait()).await {
            return status;
        }
        self.group.kill();
        self.child.kill().await?;
        self.child.wait().await
    }
}

/// Waits until the program is to get SIGTERM.
async fn due(end: &CancellationToken, terminate: &CancellationToken, notice: Duration) {
    tokio::select! {
        () = terminate.cancelled() => {}
        () = async { end.cancelled().await; sleep(notice).await } => {}
    }
}

/// The errors of a program: logged, and the last of them kept.
struct Errors {
    lines: Lines<ChildStderr>,
    tail: Arc<Tail>,
    masks: Masks,
    agent: String,
}

impl Errors {
    async fn read(mut self, ended: watch::Receiver<Option<io::Result<ExitStatus>>>) {
        let drained = drained(ended);
        tokio::pin!(drained);
        loop {
            let line = tokio::select! {
                biased;
                line = self.lines.next() => line,
                () = &mut drained => return,
            };
            let Ok(Some(Line::Whole(line) | Line::Cut(line))) = line else {
                return;
            };
            let shown = self.masks.shown(&line);
            tracing::info!(target: "nuncio::process", { agent.id = %self.agent }, "{shown}");
            self.tail.add(shown);
        }
    }
}
