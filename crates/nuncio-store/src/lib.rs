//! What must survive: tasks with their logs and conversations, idempotency keys, leases, webhooks,
//! what agents keep: sessions, state, call trees; and whose the tasks of agents elsewhere are.
//!
//! [`Store`] is what the engine needs of a database, in the words of the engine; [`SqliteStore`],
//! [`PostgresStore`] and [`MemoryStore`] implement it. One contract suite (`contract`) passes on each.
//!
//! Two rules hold everywhere. A reply comes after the commit: what a method has returned is on
//! disk. And every query takes a [`Scope`]: what another caller made is absent.

mod claims;
mod content;
mod fold;
mod input;
mod memory;
mod nodes;
mod open;
mod owners;
mod parts;
mod payload;
mod postgres;
mod report;
mod sessions;
mod sqlite;
mod types;
mod upkeep;
mod webhooks;

pub use content::{ContentStream, PartPlace, StoredPart};
pub use memory::{MemoryOptions, MemoryStore};
pub use nodes::{NodeRow, Nodes};
pub use open::{OpenOptions, is_shared, open, shown_url};
pub use owners::{OwnedId, Owners};
pub use parts::PartsOptions;
pub use postgres::{PostgresOptions, PostgresStore};
pub use report::{CheckReport, SchemaReport};
pub use sessions::{
    SessionAppend, SessionAppended, SessionEntry, SessionKey, SessionState, Sessions, StateChange,
    StateScope,
};
pub use sqlite::{
    SqliteOptions, SqliteStore, Synchronous, backup, check, examine, migrate, restore,
};
pub use types::{
    Append, Appended, Change, Claim, ClaimedRun, Created, Head, HeldRun, Idempotency, Lease,
    LeaseChange, ListFilter, NewTask, PageKey, PushConfigRow, Scope, Store, StoreError,
    StoreFuture, StoredTask, TaskPage, Webhook,
};
pub use upkeep::{Imported, Sweep, SweepKind, SweepMark, Swept, WholeTask};
pub use webhooks::{
    CallOutcome, CallRecord, DeadLetter, Deliveries, Delivery, DeliveryFilter, DeliveryState,
    Disabled, LetterChange, Redelivery, Settlement, WebhookId,
};
