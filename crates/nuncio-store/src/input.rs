//! What a store takes on trust from nobody: positions, states and ids of what is to be written.

use nuncio_protocol::{Event, StreamResponse, TaskState};

use crate::fold::fold;
use crate::{Append, Head, NewTask, StoreError, WholeTask};

/// Logs end here: at a thousand events a second, after fifty days.
const MAX_POSITION: u64 = u32::MAX as u64;

/// Checks a new task before it is written.
///
/// # Errors
/// [`StoreError::Corrupt`] names what does not fit; the caller's code is wrong then.
pub(crate) fn check_new(new: &NewTask) -> Result<(), StoreError> {
    contiguous(&new.events, 0)?;
    let begins_with_task = new.events.first().is_some_and(
        |event| matches!(event.response(), StreamResponse::Task(task) if task.id == new.task.id),
    );
    if !begins_with_task {
        return Err(broken("position 1 of a log is the whole task"));
    }
    if new.task.status.timestamp.is_none() {
        return Err(broken("a stored status has a time"));
    }
    says(&new.events, new.task.status.state)
}

/// Checks what is to be added, as far as this is possible without the task.
///
/// # Errors
/// As [`check_new`].
pub(crate) fn check_append(append: &Append) -> Result<(), StoreError> {
    contiguous(&append.events, append.after)?;
    says(&append.events, append.state)?;
    if append.request.is_some() && append.events.is_empty() {
        return Err(broken("a request accompanies the first event"));
    }
    let fits = append
        .snapshot
        .as_ref()
        .is_none_or(|task| task.id == append.task && task.status.state == append.state);
    if fits {
        Ok(())
    } else {
        Err(broken("a snapshot is the task after the events"))
    }
}

/// Checks that the task may go to the state of the append, once it is known where it stands.
///
/// # Errors
/// As [`check_new`].
pub(crate) fn check_transition(head: &Head, append: &Append) -> Result<(), StoreError> {
    let told = append.events.iter().any(|event| event.state().is_some());
    if !told && append.state != head.state {
        return Err(broken("a state changes by an event"));
    }
    match head.state.next(append.state) {
        Ok(_) => Ok(()),
        Err(illegal) => Err(StoreError::Corrupt(illegal.to_string())),
    }
}

/// Checks a task of another store before it is written.
///
/// # Errors
/// As [`check_new`].
pub(crate) fn check_import(whole: &WholeTask) -> Result<(), StoreError> {
    let (task, head) = (&whole.task, &whole.head);
    if task.status.state != head.state {
        return Err(broken("the head says the state of the task"));
    }
    if head.last == 0 || head.last > MAX_POSITION {
        return Err(broken("a task has a first event"));
    }
    let positions = || whole.requests.iter().map(|(position, _)| *position);
    let in_order = positions().is_sorted_by(|a, b| a < b);
    if !in_order || positions().any(|position| position == 0 || position > head.last) {
        return Err(broken("a request accompanies an event"));
    }
    let Some(log) = &whole.log else {
        let ended = head.state.is_terminal();
        return if ended {
            Ok(())
        } else {
            Err(broken("only ended tasks are without a log"))
        };
    };
    contiguous(log, 0)?;
    if log.len() as u64 != head.last || fold(None, log.iter().map(Event::response))? != *task {
        return Err(broken("a task is the fold of its log"));
    }
    Ok(())
}

/// Whether a writer that knows the task as `append` says may write.
pub(crate) fn may_write(head: &Head, append: &Append) -> bool {
    head.last == append.after
        && !head.state.is_terminal()
        && append.epoch.is_none_or(|epoch| epoch == head.epoch)
}

fn contiguous(events: &[Event], after: u64) -> Result<(), StoreError> {
    let last = after.checked_add(events.len() as u64);
    let fits = last.is_some_and(|last| last <= MAX_POSITION);
    let mut positions = (1..).map(|n| after + n).zip(events);
    if fits && positions.all(|(position, event)| event.position == Some(position)) {
        Ok(())
    } else {
        Err(broken("positions are contiguous"))
    }
}

fn says(events: &[Event], state: TaskState) -> Result<(), StoreError> {
    let last = events.iter().rev().find_map(Event::state);
    if state == TaskState::Unspecified || last.is_some_and(|last| last != state) {
        return Err(broken(
            "the state is the one of the last event that has one",
        ));
    }
    Ok(())
}

fn broken(rule: &str) -> StoreError {
    StoreError::Corrupt(format!("refused to write what breaks a rule: {rule}"))
}
