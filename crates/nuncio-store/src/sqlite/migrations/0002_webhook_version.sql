-- The protocol version in which a webhook is notified: that of the request which created it.
ALTER TABLE push_configs ADD COLUMN version TEXT NOT NULL DEFAULT '1.0';
