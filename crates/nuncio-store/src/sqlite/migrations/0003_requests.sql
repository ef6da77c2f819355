-- What accompanied a message and is no part of the log, by the position of the message.
CREATE TABLE requests (
    task     INTEGER NOT NULL,
    position INTEGER NOT NULL,
    body     TEXT NOT NULL,
    PRIMARY KEY (task, position)
) STRICT, WITHOUT ROWID;
