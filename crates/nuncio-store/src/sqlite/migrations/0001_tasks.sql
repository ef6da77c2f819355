-- Whose data it is. Everything else refers to the number.
CREATE TABLE scopes (
    number    INTEGER PRIMARY KEY,
    workspace TEXT NOT NULL,
    agent     TEXT NOT NULL,
    caller    TEXT NOT NULL,
    UNIQUE (workspace, agent, caller)
) STRICT;

-- One small row per task; what may grow stands in tables of its own, so that an event of a
-- stream rewrites a hundred bytes whatever the task weighs.
CREATE TABLE tasks (
    number         INTEGER PRIMARY KEY,
    id             TEXT NOT NULL UNIQUE,
    scope          INTEGER NOT NULL,
    context        TEXT NOT NULL,
    state          INTEGER NOT NULL,  -- number of the state in the proto
    status_ms      INTEGER NOT NULL,
    last           INTEGER NOT NULL,  -- newest position of the log
    epoch          INTEGER NOT NULL,
    turn           INTEGER NOT NULL,
    attempt        INTEGER NOT NULL,
    lease_owner    TEXT,
    lease_until_ms INTEGER,
    created_ms     INTEGER NOT NULL
) STRICT;
-- Every index over status_ms moves an entry whenever a task ends, and most tasks end completed.
-- So there is one of all tasks, one of those that are not completed, and the few tasks of a
-- conversation are sorted when they are asked for.
CREATE INDEX tasks_by_time    ON tasks (scope, status_ms, id);
CREATE INDEX tasks_by_state   ON tasks (state, scope, status_ms, id) WHERE state <> 3;
CREATE INDEX tasks_by_context ON tasks (scope, context);
CREATE INDEX tasks_waiting    ON tasks (scope, context) WHERE state = 6;

-- The events of one commit: a JSON array, positions first to first + count - 1.
-- slot = task * 2^32 + first: one tree in the order of reading, and rows that fill their pages
-- (a table without rowid would put every payload above 1 KB on overflow pages).
CREATE TABLE log (
    slot    INTEGER PRIMARY KEY,
    count   INTEGER NOT NULL,
    format  INTEGER NOT NULL,
    payload TEXT NOT NULL
) STRICT;

-- The task as of position seq.
CREATE TABLE snapshots (
    task   INTEGER PRIMARY KEY,
    seq    INTEGER NOT NULL,
    format INTEGER NOT NULL,
    body   TEXT NOT NULL
) STRICT;

-- What an agent asked to find again after a restart.
CREATE TABLE checkpoints (
    task INTEGER PRIMARY KEY,
    body TEXT NOT NULL
) STRICT;

-- What each idempotency key was used for.
CREATE TABLE keys (
    scope        INTEGER NOT NULL,
    key          TEXT NOT NULL,
    task         INTEGER NOT NULL,
    request_hash BLOB NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;

-- Webhooks; cursor is the newest position delivered.
CREATE TABLE push_configs (
    task   INTEGER NOT NULL,
    id     TEXT NOT NULL,
    cursor INTEGER NOT NULL,
    format INTEGER NOT NULL,
    body   TEXT NOT NULL,
    PRIMARY KEY (task, id)
) STRICT, WITHOUT ROWID;

-- How far each owner has prolonged its leases: one row instead of one per run.
CREATE TABLE owners (
    owner    TEXT PRIMARY KEY,
    until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How many tasks a scope has in a state.
CREATE TABLE totals (
    scope INTEGER NOT NULL,
    state INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (scope, state)
) STRICT, WITHOUT ROWID;

-- Written by a ping, to see that writing works.
CREATE TABLE pulse (
    number INTEGER PRIMARY KEY,
    beats  INTEGER NOT NULL
) STRICT;
INSERT INTO pulse VALUES (1, 0);
