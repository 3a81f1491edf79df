-- +goose Up
-- What identifies a webhook that goes to a target only once, and for how long; NULL: all go.
--
-- forward_keys has a row for each delivery of an event that was identified: key is a hash of what identifies it, and NULL once the delivery was
-- skipped for same_as, the first event with it; received_at is that of the event. same_as is also what a delivery waits for.
ALTER TABLE forwarding_targets ADD COLUMN dedupe_by TEXT;
ALTER TABLE forwarding_targets ADD COLUMN dedupe_seconds INTEGER;
CREATE TABLE forward_keys (
    forward     INTEGER PRIMARY KEY,
    target      INTEGER NOT NULL,
    event       INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    key         BLOB,
    same_as     TEXT
) STRICT;
CREATE INDEX forward_keys_key ON forward_keys (target, key, received_at) WHERE key IS NOT NULL;
CREATE INDEX forward_keys_event ON forward_keys (event);

-- +goose Down
DROP TABLE forward_keys;
ALTER TABLE forwarding_targets DROP COLUMN dedupe_seconds;
ALTER TABLE forwarding_targets DROP COLUMN dedupe_by;
