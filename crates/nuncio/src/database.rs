//! `nuncio db check`: is a database intact?

use crate::arguments::DbCheckArguments;
use crate::outcome::{Failure, Outcome, print};

/// Checks a database and says what is in it; a broken one is a failure.
pub(crate) fn check(arguments: &DbCheckArguments) -> Outcome {
    let mut path = arguments.path.clone();
    if path.is_dir() {
        path.push("nuncio.db");
    }
    let shown = path.display();
    let report = nuncio_store::check(&path)
        .map_err(|error| Failure::internal(format!("failed to check {shown}: {error}")))?;
    print(&format!(
        "Database: {shown}\nTasks: {}\nEvents: {}\n",
        report.tasks, report.events
    ))?;
    if report.problems.is_empty() {
        return Ok(print("State: intact\n")?);
    }
    for problem in &report.problems {
        print(&format!("Problem: {problem}\n"))?;
    }
    Err(Failure::internal(format!(
        "the database {shown} is damaged: {} problems",
        report.problems.len()
    ))
    .hint("stop the server, keep a copy, and restore a backup"))
}
