-- How the calls of a webhook have gone since the last one that was taken; most webhooks have no row.
CREATE TABLE push_states (
    task             INTEGER NOT NULL,
    id               TEXT NOT NULL,
    attempts         INTEGER NOT NULL,
    refusals         INTEGER NOT NULL,
    upto             INTEGER NOT NULL,
    failing_for_ms   INTEGER NOT NULL,
    down_for_ms      INTEGER NOT NULL,
    failing_since_ms INTEGER,
    last_call_ms     INTEGER,
    next_call_ms     INTEGER,
    disabled         TEXT,
    PRIMARY KEY (task, id)
) STRICT, WITHOUT ROWID;

-- Events that were given up.
CREATE TABLE push_letters (
    task        INTEGER NOT NULL,
    id          TEXT NOT NULL,
    position    INTEGER NOT NULL,
    given_up_ms INTEGER NOT NULL,
    attempts    INTEGER NOT NULL,
    cause       TEXT NOT NULL,
    requested   INTEGER NOT NULL,
    PRIMARY KEY (task, id, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX push_letters_by_time   ON push_letters (given_up_ms);
CREATE INDEX push_letters_requested ON push_letters (task, id) WHERE requested = 1;

-- The log of calls.
CREATE TABLE push_calls (
    number     INTEGER PRIMARY KEY,
    task       INTEGER NOT NULL,
    id         TEXT NOT NULL,
    first      INTEGER NOT NULL,
    last       INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    attempt    INTEGER NOT NULL,
    at_ms      INTEGER NOT NULL,
    took_ms    INTEGER NOT NULL,
    outcome    TEXT NOT NULL
) STRICT;
CREATE INDEX push_calls_by_webhook ON push_calls (task, id, number);
CREATE INDEX push_calls_by_time    ON push_calls (at_ms);
