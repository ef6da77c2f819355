//! Creates and appends as the stored function takes them, and what it says became of them.

use std::borrow::Cow;

use nuncio_protocol::{Event, TaskState, Timestamp, json};
use tokio_postgres::Row;

use super::failure::unavailable;
use super::lease::term_ms;
use super::push;
use super::rows::{self, column, original, scope_texts, stored};
use crate::input::{check_append, check_new, check_transition};
use crate::payload::payload;
use crate::{
    Append, Appended, Created, Head, Idempotency, Lease, LeaseChange, NewTask, Scope, StoreError,
    Webhook,
};

/// The stored function; its parameters are the fields of [`Columns`] in their order.
pub(super) const WRITE: &str = "SELECT item, outcome, used_by, same_request,
    at_last, at_state, at_epoch, at_turn, at_attempt, at_owner, at_checkpoint
    FROM nuncio.write_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
        $17, $18, $19, $20, $21, $22, $23, $24, $25, $26)";

/// A checked create or append, with what has been encoded for it.
pub(super) struct Write {
    what: What,
    payload: Option<String>,
    snapshot: Option<String>,
    hook: Option<(String, String)>,
}

enum What {
    Create(Box<NewTask>),
    Append(Box<Append>),
}

/// What became of a write.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is stored; an append gets the epoch.
    Written(u64),
    /// The key was used for this task; by the same request or not.
    Existing(String, bool),
    /// Somebody was quicker.
    Conflict(Head),
    Missing,
    /// From this state the task may not go to the one of the append.
    Illegal(Head),
    /// A task of that id exists.
    Taken,
}

impl Write {
    /// # Errors
    /// [`StoreError::Corrupt`] for what breaks the rules of [`NewTask`].
    pub(super) fn create(new: NewTask) -> Result<Self, StoreError> {
        check_new(&new)?;
        Ok(Self {
            payload: Some(payload(&new.events)),
            snapshot: new.snapshot.then(|| json::encode(new.task.as_ref())),
            hook: new
                .push_config
                .as_ref()
                .map(|webhook| push::encode(&new.task.id, webhook)),
            what: What::Create(Box::new(new)),
        })
    }

    /// # Errors
    /// [`StoreError::Corrupt`] for what breaks the rules of [`Append`].
    pub(super) fn append(append: Append) -> Result<Self, StoreError> {
        check_append(&append)?;
        Ok(Self {
            payload: (!append.events.is_empty()).then(|| payload(&append.events)),
            snapshot: append.snapshot.as_deref().map(json::encode),
            hook: append
                .push_config
                .as_ref()
                .map(|webhook| push::encode(&append.task, webhook)),
            what: What::Append(Box::new(append)),
        })
    }

    /// The id of the task.
    pub(super) fn task(&self) -> &str {
        match &self.what {
            What::Create(new) => new.task.id.as_str(),
            What::Append(append) => append.task.as_str(),
        }
    }

    /// Whether the task was there before.
    pub(super) fn is_append(&self) -> bool {
        matches!(self.what, What::Append(_))
    }

    fn scope(&self) -> &Scope {
        match &self.what {
            What::Create(new) => &new.scope,
            What::Append(append) => &append.scope,
        }
    }

    fn events(&self) -> &[Event] {
        match &self.what {
            What::Create(new) => &new.events,
            What::Append(append) => &append.events,
        }
    }

    fn key(&self) -> Option<&Idempotency> {
        match &self.what {
            What::Create(new) => new.idempotency.as_ref(),
            What::Append(append) => append.idempotency.as_ref(),
        }
    }

    fn webhook(&self) -> Option<&Webhook> {
        match &self.what {
            What::Create(new) => new.push_config.as_ref(),
            What::Append(append) => append.push_config.as_ref(),
        }
    }

    fn checkpoint(&self) -> Option<&str> {
        match &self.what {
            What::Create(new) => new.checkpoint.as_deref(),
            What::Append(append) => append.checkpoint.as_deref(),
        }
    }

    fn request(&self) -> Option<&str> {
        match &self.what {
            What::Create(new) => new.request.as_deref(),
            What::Append(append) => append.request.as_deref(),
        }
    }

    /// What becomes of the lease, as a number, and the lease that begins.
    fn lease(&self) -> (i32, Option<&Lease>) {
        match &self.what {
            What::Create(new) => (if new.lease.is_some() { 2 } else { 1 }, new.lease.as_ref()),
            What::Append(append) => match &append.lease {
                LeaseChange::Keep => (0, None),
                LeaseChange::Release => (1, None),
                LeaseChange::Take(lease) => (2, Some(lease)),
            },
        }
    }

    fn state(&self) -> TaskState {
        match &self.what {
            What::Create(new) => new.task.status.state,
            What::Append(append) => append.state,
        }
    }

    fn status_ms(&self) -> i64 {
        match &self.what {
            What::Create(new) => new.task.status.timestamp.map_or(0, Timestamp::unix_ms),
            What::Append(append) => append.status_time.unix_ms(),
        }
    }

    /// The states from which the task may go to that of the append; only its own without an event
    /// that tells of it.
    fn allowed_from(&self) -> i32 {
        let (told, to) = match &self.what {
            What::Create(_) => return 0,
            What::Append(append) => (
                append.events.iter().any(|event| event.state().is_some()),
                append.state,
            ),
        };
        bits(|from| from.next(to).is_ok() && (told || from == to))
    }

    /// The reply to a create.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for an id that is taken.
    pub(super) fn created(outcome: Outcome) -> Result<Created, StoreError> {
        match outcome {
            Outcome::Written(_) => Ok(Created::New),
            Outcome::Existing(task, same_request) => Ok(Created::Existing {
                task: task.into(),
                same_request,
            }),
            Outcome::Taken => Err(StoreError::Corrupt("a task of that id exists".to_owned())),
            _ => Err(strange()),
        }
    }

    /// The outcome, or the error of a state that may not follow.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`].
    pub(super) fn judged(&self, outcome: Outcome) -> Result<Outcome, StoreError> {
        match (outcome, &self.what) {
            (Outcome::Illegal(head), What::Append(append)) => {
                check_transition(&head, append).and(Err(strange()))
            }
            (outcome, _) => Ok(outcome),
        }
    }

    /// The reply to an append.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for an outcome that no append has.
    pub(super) fn appended(outcome: Outcome) -> Result<Appended, StoreError> {
        match outcome {
            Outcome::Written(epoch) => Ok(Appended::Done { epoch }),
            Outcome::Existing(task, same_request) => Ok(Appended::Existing {
                task: task.into(),
                same_request,
            }),
            Outcome::Conflict(head) => Ok(Appended::Conflict(head)),
            Outcome::Missing => Ok(Appended::Missing),
            Outcome::Illegal(_) | Outcome::Taken => Err(strange()),
        }
    }
}

fn strange() -> StoreError {
    StoreError::Corrupt("the database judged otherwise than we do".to_owned())
}

/// A set of states: bit n for the one of number n.
fn bits(holds: impl Fn(TaskState) -> bool) -> i32 {
    let chosen = TaskState::ALL.iter().filter(|state| holds(**state));
    chosen.fold(0, |bits, state| bits | 1 << state.number())
}

/// The states that are not terminal.
pub(super) fn open_states() -> i32 {
    bits(|state| !state.is_terminal())
}

/// Writes side by side: a column for each parameter of [`WRITE`].
#[derive(Default)]
pub(super) struct Columns<'a> {
    scopes: [Vec<Cow<'a, str>>; 3],
    ids: Vec<Cow<'a, str>>,
    contexts: Vec<Option<Cow<'a, str>>>,
    afters: Vec<i64>,
    epochs: Vec<Option<i64>>,
    counts: Vec<i32>,
    payloads: Vec<Option<&'a str>>,
    states: Vec<i32>,
    from_states: Vec<i32>,
    status_times: Vec<i64>,
    snapshots: Vec<Option<&'a str>>,
    checkpoints: Vec<Option<&'a str>>,
    turns: Vec<Option<i64>>,
    leases: Vec<i32>,
    owners: Vec<Option<&'a str>>,
    terms: Vec<Option<i64>>,
    keys: Vec<Option<Cow<'a, str>>>,
    hashes: Vec<Option<&'a [u8]>>,
    hooks: Vec<Option<&'a str>>,
    hook_bodies: Vec<Option<&'a str>>,
    hook_versions: Vec<Option<&'a str>>,
    requests: Vec<Option<&'a str>>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(writes: impl Iterator<Item = &'a Write>) -> Self {
        let mut columns = Self::default();
        for write in writes {
            columns.add(write);
        }
        columns
    }

    fn add(&mut self, write: &'a Write) {
        for (column, text) in self.scopes.iter_mut().zip(scope_texts(write.scope())) {
            column.push(text);
        }
        let (context, after, epoch, turn) = match &write.what {
            What::Create(new) => (Some(stored(new.context.as_str())), 0, None, None),
            What::Append(append) => (None, append.after, append.epoch, append.turn),
        };
        let (lease, begins) = write.lease();
        self.ids.push(stored(write.task()));
        self.contexts.push(context);
        self.afters.push(after as i64);
        self.epochs.push(epoch.map(|epoch| epoch as i64));
        self.counts.push(write.events().len() as i32);
        self.payloads.push(write.payload.as_deref());
        self.states.push(write.state().number());
        self.from_states.push(write.allowed_from());
        self.status_times.push(write.status_ms());
        self.snapshots.push(write.snapshot.as_deref());
        self.checkpoints.push(write.checkpoint());
        self.turns.push(turn.map(|turn| turn as i64));
        self.leases.push(lease);
        self.owners.push(begins.map(|lease| &*lease.owner));
        self.terms.push(begins.map(term_ms));
        self.keys.push(write.key().map(|key| stored(&key.key)));
        self.hashes
            .push(write.key().map(|key| key.request_hash.as_slice()));
        let hook = write.hook.as_ref();
        self.hooks.push(hook.map(|(id, _)| id.as_str()));
        self.hook_bodies.push(hook.map(|(_, body)| body.as_str()));
        self.hook_versions
            .push(write.webhook().map(|webhook| webhook.version.as_str()));
        self.requests.push(write.request());
    }

    /// Calls the function, which is one commit, and gives what became of each.
    pub(super) async fn write(
        &self,
        connection: &super::connection::Connection,
        part: i32,
    ) -> Result<Vec<Outcome>, super::failure::Failure> {
        let open = open_states();
        let [workspaces, agents, callers] = &self.scopes;
        let rows = connection
            .query(
                WRITE,
                &[
                    &open,
                    &part,
                    workspaces,
                    agents,
                    callers,
                    &self.ids,
                    &self.contexts,
                    &self.afters,
                    &self.epochs,
                    &self.counts,
                    &self.payloads,
                    &self.states,
                    &self.from_states,
                    &self.status_times,
                    &self.snapshots,
                    &self.checkpoints,
                    &self.turns,
                    &self.leases,
                    &self.owners,
                    &self.terms,
                    &self.keys,
                    &self.hashes,
                    &self.hooks,
                    &self.hook_bodies,
                    &self.hook_versions,
                    &self.requests,
                ],
            )
            .await?;
        if rows.len() != self.ids.len() {
            return Err(strange().into());
        }
        Ok(rows.iter().map(outcome).collect::<Result<_, _>>()?)
    }
}

fn outcome(row: &Row) -> Result<Outcome, StoreError> {
    let stands = || rows::head(row, 4);
    Ok(match column::<i32>(row, 1)? {
        0 => Outcome::Written(column::<Option<i64>>(row, 6)?.unwrap_or(0) as u64),
        1 => match column::<Option<&str>>(row, 2)? {
            Some(used_by) => Outcome::Existing(original(used_by), column(row, 3)?),
            // The task that had the key expired between two statements: the key is free now.
            None => return Err(unavailable("busy")),
        },
        2 => Outcome::Conflict(stands()?),
        3 => Outcome::Missing,
        4 => Outcome::Illegal(stands()?),
        5 => Outcome::Taken,
        _ => return Err(strange()),
    })
}
