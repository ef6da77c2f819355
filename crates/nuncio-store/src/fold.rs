//! Snapshot and tail become a task, by the one reducer.

use std::sync::Arc;

use nuncio_protocol::{StreamResponse, Task};

use crate::StoreError;

/// Folds `tail` into `base`; without a base the tail begins with the whole task.
///
/// # Errors
/// [`StoreError::Corrupt`] for events that do not fold, and if there is nothing at all.
pub(crate) fn fold<'a>(
    base: Option<Task>,
    tail: impl IntoIterator<Item = &'a StreamResponse>,
) -> Result<Arc<Task>, StoreError> {
    let mut task = base;
    for response in tail {
        match (&mut task, response) {
            (Some(task), response) => task
                .apply(response)
                .map_err(|error| StoreError::Corrupt(format!("a log does not fold: {error}")))?,
            (None, StreamResponse::Task(first)) => task = Some(first.clone()),
            (None, _) => return Err(corrupt("a log does not begin with its task")),
        }
    }
    task.map(Arc::new)
        .ok_or_else(|| corrupt("a task has neither snapshot nor log"))
}

fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(what.to_owned())
}
