-- Expand only: what an older nuncio calls stays as it is, so that replicas can be renewed one by
-- one. A function that has to change gets a new number; the old one stays beside it.

-- Whose data it is. Everything else refers to the number.
CREATE TABLE nuncio.scopes (
    number    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace text COLLATE "C" NOT NULL,
    agent     text COLLATE "C" NOT NULL,
    caller    text COLLATE "C" NOT NULL,
    UNIQUE (workspace, agent, caller)
);

-- One small row per task; what may grow stands in tables of its own. An event that changes no
-- state touches no index, and finds room in its page.
CREATE SEQUENCE nuncio.task_numbers CACHE 64;
CREATE TABLE nuncio.tasks (
    number      bigint PRIMARY KEY,
    id          text COLLATE "C" NOT NULL UNIQUE,
    scope       bigint NOT NULL,
    context     text COLLATE "C" NOT NULL,
    state       int NOT NULL,     -- number of the state in the proto
    status_ms   bigint NOT NULL,
    last        bigint NOT NULL,  -- newest position of the log
    epoch       bigint NOT NULL,
    turn        bigint NOT NULL,
    attempt     bigint NOT NULL,
    lease_owner text COLLATE "C",
    lease_until timestamptz,      -- by the clock of the database
    created_ms  bigint NOT NULL
) WITH (fillfactor = 80);
-- Every index over status_ms gets an entry whenever a task ends, and most tasks end completed.
-- So there is one of all tasks, one of those that are not completed, and the few tasks of a
-- conversation are sorted when they are asked for.
CREATE INDEX tasks_by_time    ON nuncio.tasks (scope, status_ms, id);
CREATE INDEX tasks_by_state   ON nuncio.tasks (state, scope, status_ms, id) WHERE state <> 3;
CREATE INDEX tasks_by_context ON nuncio.tasks (scope, context);
CREATE INDEX tasks_waiting    ON nuncio.tasks (scope, context) WHERE state = 6;

-- The events of one commit: a JSON array, positions first to first + count - 1.
CREATE TABLE nuncio.log (
    task    bigint NOT NULL,
    first   bigint NOT NULL,
    count   int NOT NULL,
    format  smallint NOT NULL,
    payload text NOT NULL,
    PRIMARY KEY (task, first)
);

-- The task as of position seq.
CREATE TABLE nuncio.snapshots (
    task   bigint PRIMARY KEY,
    seq    bigint NOT NULL,
    format smallint NOT NULL,
    body   text NOT NULL
);

-- What an agent asked to find again after a restart.
CREATE TABLE nuncio.checkpoints (
    task bigint PRIMARY KEY,
    body text NOT NULL
);

-- What accompanied a message and is no part of the log, by the position of the message.
CREATE TABLE nuncio.requests (
    task     bigint NOT NULL,
    position bigint NOT NULL,
    body     text NOT NULL,
    PRIMARY KEY (task, position)
);

-- What each idempotency key was used for.
CREATE TABLE nuncio.keys (
    scope        bigint NOT NULL,
    key          text COLLATE "C" NOT NULL,
    task         bigint NOT NULL,
    request_hash bytea NOT NULL,
    PRIMARY KEY (scope, key)
);

-- Webhooks; cursor is the newest position delivered, version the protocol version in which one is
-- notified.
CREATE TABLE nuncio.push_configs (
    task    bigint NOT NULL,
    id      text COLLATE "C" NOT NULL,
    cursor  bigint NOT NULL,
    format  smallint NOT NULL,
    body    text NOT NULL,
    version text NOT NULL,
    PRIMARY KEY (task, id)
);

-- How far each owner has prolonged its leases: one row instead of one per run.
CREATE TABLE nuncio.owners (
    owner text COLLATE "C" PRIMARY KEY,
    until timestamptz NOT NULL
);

-- How many tasks a scope has in a state: the sum over all parts. Each writing connection counts on
-- a part of its own, so that writers do not wait for each other.
CREATE TABLE nuncio.totals (
    scope bigint NOT NULL,
    state int NOT NULL,
    part  int NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (scope, state, part)
) WITH (fillfactor = 50);

-- Written by a ping, to see that writing works.
CREATE TABLE nuncio.pulse (
    number int PRIMARY KEY,
    beats  bigint NOT NULL
) WITH (fillfactor = 50);
INSERT INTO nuncio.pulse VALUES (1, 0);

-- What all processes must know and nobody else: made by the first, and never changed.
CREATE TABLE nuncio.secrets (
    name   text COLLATE "C" PRIMARY KEY,
    secret bytea NOT NULL
);
