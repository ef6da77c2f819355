//! A task's log in memory: as it is while the task lives, as text once it has ended.
//!
//! Nobody reads most logs again, and as text they take a quarter of the room.

use nuncio_protocol::{Event, json};

use crate::StoreError;

/// A log; position n is the nth event.
#[derive(Debug)]
pub(super) enum Log {
    /// Of a task that goes on.
    Live(Vec<Event>),
    /// Of a task that has ended: one event a line.
    Ended { lines: Box<str>, count: usize },
    /// Of a task that ended long ago: only the task is left.
    Forgotten { count: usize },
}

impl Log {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Live(events) => events.len(),
            Self::Ended { count, .. } | Self::Forgotten { count } => *count,
        }
    }

    /// Adds events; an ended log takes none.
    pub(super) fn extend(&mut self, added: Vec<Event>) {
        if let Self::Live(events) = self {
            events.reserve_exact(added.len());
            events.extend(added);
        }
    }

    /// The events after the first `skip`, which no ended task has.
    pub(super) fn tail(&self, skip: usize) -> Vec<Event> {
        match self {
            Self::Live(events) => events[skip..].to_vec(),
            Self::Ended { .. } | Self::Forgotten { .. } => Vec::new(),
        }
    }

    /// Turns the log of an ended task into text.
    pub(super) fn end(&mut self) {
        let Self::Live(events) = self else { return };
        let mut lines = String::with_capacity(events.iter().map(|e| e.json().len() + 1).sum());
        for event in events.iter() {
            lines.push_str(event.json());
            lines.push('\n');
        }
        *self = Self::Ended {
            lines: lines.into_boxed_str(),
            count: events.len(),
        };
    }

    /// At most `limit` events after a position.
    pub(super) fn read(&self, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        let skip = usize::try_from(after).unwrap_or(usize::MAX);
        match self {
            Self::Live(events) => Ok(events.iter().skip(skip).take(limit).cloned().collect()),
            Self::Forgotten { .. } => Ok(Vec::new()),
            Self::Ended { lines, .. } => {
                let lines = lines.lines().zip(1..).skip(skip).take(limit);
                lines
                    .map(|(line, position)| decoded(line, position))
                    .collect()
            }
        }
    }
}

fn decoded(line: &str, position: u64) -> Result<Event, StoreError> {
    let response = json::decode_checked(line)
        .map_err(|error| StoreError::Corrupt(format!("an event is unreadable: {error}")))?;
    Ok(Event::new(Some(position), response))
}
