//! From rows and texts of the database to our values, and back.

use std::borrow::Cow;
use std::sync::Arc;

use nuncio_protocol::{StreamResponse, Task, TaskState};
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::fold::fold;
use crate::{Head, Scope, StoreError};

/// The format of what is stored as JSON text: A2A 1.0 as `nuncio_protocol` spells it.
pub(super) const FORMAT: i16 = 1;

/// Columns of [`head`].
pub(super) const HEAD: &str = "t.last, t.state, t.epoch, t.turn, t.attempt, t.lease_owner, c.body";

/// Which task, by `$1` to `$4`: id and scope.
pub(super) const OF_SCOPE: &str =
    "t.id = $1 AND s.workspace = $2 AND s.agent = $3 AND s.caller = $4";

/// Stands for a NUL, which no text of PostgreSQL can hold.
const MARK: char = '\u{ffff}';

/// A text as it is stored: a NUL becomes a mark and `0`, the mark a mark and `1`.
///
/// Keys, conversations and ids that callers make up may hold any character.
pub(super) fn stored(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', MARK]) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0' => escaped.extend([MARK, '0']),
            MARK => escaped.extend([MARK, '1']),
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

/// The text that [`stored`] was given.
pub(super) fn original(text: &str) -> String {
    let mut characters = text.chars();
    let mut original = String::with_capacity(text.len());
    while let Some(character) = characters.next() {
        match character {
            MARK if characters.next() == Some('0') => original.push('\0'),
            other => original.push(other),
        }
    }
    original
}

/// The texts of a scope as they are stored.
pub(super) fn scope_texts(scope: &Scope) -> [Cow<'_, str>; 3] {
    [
        stored(scope.workspace.as_str()),
        stored(scope.agent.as_str()),
        stored(scope.caller.as_str()),
    ]
}

/// A column that is what it should be.
///
/// # Errors
/// [`StoreError::Corrupt`] if it is not.
pub(super) fn column<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, StoreError> {
    row.try_get(at).map_err(|_| strange())
}

/// A column that counts.
pub(super) fn number(row: &Row, at: usize) -> Result<u64, StoreError> {
    u64::try_from(column::<i64>(row, at)?).map_err(|_| strange())
}

fn strange() -> StoreError {
    StoreError::Corrupt("a stored value is not what it should be".to_owned())
}

/// A state by its number.
pub(super) fn state(row: &Row, at: usize) -> Result<TaskState, StoreError> {
    TaskState::from_number(column::<i32>(row, at)?.into()).ok_or_else(strange)
}

/// Seven columns of [`HEAD`], from `at`.
pub(super) fn head(row: &Row, at: usize) -> Result<Head, StoreError> {
    Ok(Head {
        last: number(row, at)?,
        state: state(row, at + 1)?,
        epoch: number(row, at + 2)?,
        turn: number(row, at + 3)?,
        attempt: number(row, at + 4)?,
        owner: column::<Option<&str>>(row, at + 5)?.map(Arc::from),
        checkpoint: column::<Option<&str>>(row, at + 6)?.map(Arc::from),
    })
}

/// A scope from three columns.
pub(super) fn scope(row: &Row, at: usize) -> Result<Scope, StoreError> {
    let text = |n: usize| column::<&str>(row, at + n).map(original);
    Ok(Scope {
        workspace: text(0)?.into(),
        agent: text(1)?.into(),
        caller: text(2)?.into(),
    })
}

/// The columns of [`task`], after joins of [`TASK_JOINS`].
pub(super) const TASK: &str = "n.seq, n.body, tail.payloads,
    coalesce(n.format, 1) = 1 AND coalesce(tail.known, true)";

/// Snapshot and tail of a task `t`.
pub(super) const TASK_JOINS: &str = "
    LEFT JOIN nuncio.snapshots n ON n.task = t.number
    LEFT JOIN LATERAL (
        SELECT array_agg(l.payload ORDER BY l.first) AS payloads,
               bool_and(l.format = 1) AS known
        FROM nuncio.log l WHERE l.task = t.number AND l.first > coalesce(n.seq, 0)
    ) tail ON true";

/// A task of which `last` is the newest position, from four columns.
///
/// # Errors
/// [`StoreError::Corrupt`] for text that does not read, and for gaps.
pub(super) fn task(row: &Row, at: usize, last: u64) -> Result<Arc<Task>, StoreError> {
    if !column::<bool>(row, at + 3)? {
        return Err(StoreError::Corrupt(
            "a task of an unknown format".to_owned(),
        ));
    }
    let seq = column::<Option<i64>>(row, at)?.unwrap_or(0);
    let body: Option<&str> = column(row, at + 1)?;
    let payloads: Option<Vec<&str>> = column(row, at + 2)?;
    let mut tail: Vec<StreamResponse> = Vec::new();
    for payload in payloads.unwrap_or_default() {
        tail.append(&mut decode(payload)?);
    }
    if seq as u64 + tail.len() as u64 != last {
        return Err(StoreError::Corrupt("a log has a gap".to_owned()));
    }
    fold(body.map(decode).transpose()?, &tail)
}

/// Reads JSON text that we have written.
pub(super) fn decode<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| {
        StoreError::Corrupt(format!("stored text does not read: {:?}", error.classify()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_can_be_stored() {
        for text in [
            "",
            "plain",
            "a\0b",
            "\u{ffff}",
            "\u{ffff}0\0\u{ffff}1",
            "\0\0",
        ] {
            let kept = stored(text);
            assert!(!kept.contains('\0'));
            assert_eq!(original(&kept), text);
        }
        assert_ne!(stored("\0"), stored("\u{ffff}0"));
    }
}
