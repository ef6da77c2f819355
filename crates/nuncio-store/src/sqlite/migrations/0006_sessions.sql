-- What agents keep of a conversation: last is the newest position, at_ms the time of the last write.
CREATE TABLE sessions (
    number  INTEGER PRIMARY KEY,
    scope   INTEGER NOT NULL,
    context TEXT NOT NULL,
    last    INTEGER NOT NULL,
    at_ms   INTEGER NOT NULL,
    UNIQUE (scope, context)
) STRICT;
CREATE INDEX sessions_by_time ON sessions (at_ms);

-- slot = session * 2^32 + position, as in the log of tasks. A summary stands at the last position
-- that it replaces.
CREATE TABLE session_entries (
    slot  INTEGER PRIMARY KEY,
    task  TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    body  TEXT NOT NULL
) STRICT;

-- State by who shares it: the session, all sessions of a caller with an agent, all of an agent.
CREATE TABLE session_states (
    session INTEGER NOT NULL,
    name    TEXT NOT NULL,
    body    TEXT NOT NULL,
    PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE caller_states (
    scope INTEGER NOT NULL,
    name  TEXT NOT NULL,
    body  TEXT NOT NULL,
    PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE agent_states (
    workspace TEXT NOT NULL,
    agent     TEXT NOT NULL,
    name      TEXT NOT NULL,
    body      TEXT NOT NULL,
    PRIMARY KEY (workspace, agent, name)
) STRICT, WITHOUT ROWID;

-- The call trees of tasks; numbers tell what was written first.
CREATE TABLE nodes (
    number INTEGER PRIMARY KEY,
    task   INTEGER NOT NULL,
    id     TEXT NOT NULL,
    body   TEXT NOT NULL,
    UNIQUE (task, id)
) STRICT;
