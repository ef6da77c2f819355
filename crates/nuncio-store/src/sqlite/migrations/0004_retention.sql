-- The newest position that is no longer in the log: 0, or for a compacted log its last one.
ALTER TABLE tasks ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;

-- The keys of a task go with it.
CREATE INDEX keys_by_task ON keys (task);
