-- Whose the tasks and conversations of agents elsewhere are, which are kept there: kind 0 is a task, 1 a
-- conversation, at_ms the time when it was taken last. Of one agent an id is one caller's.
CREATE TABLE owned (
    agent TEXT NOT NULL,
    kind  INTEGER NOT NULL,
    id    TEXT NOT NULL,
    scope INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (agent, kind, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX owned_by_scope ON owned (scope, kind);
CREATE INDEX owned_by_time ON owned (at_ms);
