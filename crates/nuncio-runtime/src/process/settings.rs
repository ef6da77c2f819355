//! How a program is run.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How a program is run; every limit has a default.
#[derive(Clone)]
#[non_exhaustive]
pub struct ProcessSettings {
    /// The program and its arguments; no shell reads them.
    pub command: Vec<String>,
    /// Its working directory; ours if absent.
    pub folder: Option<PathBuf>,
    /// Variables that are no secrets, such as PATH. Beside these and `env` it gets none.
    pub inherited: BTreeMap<String, String>,
    /// Further variables. Their values are masked where the program's errors are shown.
    pub env: BTreeMap<String, String>,
    /// Whether a program serves one run or many; one.
    pub mode: ProcessMode,
    /// Programs at once; 16. Further runs wait. A kept program is one.
    pub max_processes: usize,
    /// How long a line of its output may be, in bytes; 8 MiB.
    pub max_line_bytes: usize,
    /// How long a canceled program may take to end before it gets SIGTERM; 1 second.
    pub notice: Duration,
    /// How long it may take after SIGTERM before it gets SIGKILL; 5 seconds.
    pub grace: Duration,
}

/// How many runs a program serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessMode {
    /// One: a program is started for every message and ends with its answer.
    #[default]
    PerTask,
    /// One after another, for as long as it lives; started again when it has ended. Each of its
    /// events must name its task.
    Persistent,
}

impl ProcessSettings {
    /// A program with its arguments, started for each message, without any variables.
    pub fn new(command: Vec<String>) -> Self {
        Self {
            command,
            folder: None,
            inherited: BTreeMap::new(),
            env: BTreeMap::new(),
            mode: ProcessMode::default(),
            max_processes: 16,
            max_line_bytes: 8 << 20,
            notice: Duration::from_secs(1),
            grace: Duration::from_secs(5),
        }
    }
}

/// Shows no values of variables, and no arguments.
impl fmt::Debug for ProcessSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessSettings")
            .field("program", &self.command.first())
            .field("env", &self.env.keys())
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}
