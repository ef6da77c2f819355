//! What a test has seen, as JSON.
//!
//! `NUNCIO_REPORTS` says in which folder; without it they are in the folder for temporary files of
//! the build, under `reliability`.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Map, Value, json};

/// Whether the long form runs: `NUNCIO_RELIABILITY=long`.
#[expect(
    clippy::disallowed_methods,
    reason = "whoever runs the tests chooses their length"
)]
pub(crate) fn is_long() -> bool {
    std::env::var("NUNCIO_RELIABILITY").is_ok_and(|form| form == "long")
}

/// A count for each form.
pub(crate) fn count(short: usize, long: usize) -> usize {
    if is_long() { long } else { short }
}

/// Figures of a test; written when it ends, however it ends.
pub(crate) struct Report {
    name: &'static str,
    requirement: &'static str,
    began: Instant,
    figures: Map<String, Value>,
    passed: bool,
}

impl Report {
    /// Begins the report of a test that shows `requirement`.
    pub(crate) fn new(name: &'static str, requirement: &'static str) -> Self {
        Self {
            name,
            requirement,
            began: Instant::now(),
            figures: Map::new(),
            passed: false,
        }
    }

    /// Notes a figure.
    pub(crate) fn set(&mut self, figure: &str, value: impl Into<Value>) {
        self.figures.insert(figure.to_owned(), value.into());
    }

    /// All that was to be shown has been.
    pub(crate) fn passed(mut self) {
        self.passed = true;
    }

    fn folder() -> PathBuf {
        let chosen = std::env::var_os("NUNCIO_REPORTS").map(PathBuf::from);
        chosen.unwrap_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("reliability"))
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let report = json!({
            "test": self.name,
            "requirement": self.requirement,
            "form": if is_long() { "long" } else { "short" },
            "passed": self.passed,
            "seconds": self.began.elapsed().as_secs(),
            "figures": self.figures,
        });
        let folder = Self::folder();
        let written = std::fs::create_dir_all(&folder).and_then(|()| {
            let path = folder.join(format!("{}.json", self.name));
            std::fs::write(path, format!("{report:#}\n"))
        });
        if let Err(error) = written {
            eprintln!("the report of {} is lost: {error}", self.name);
        }
    }
}
