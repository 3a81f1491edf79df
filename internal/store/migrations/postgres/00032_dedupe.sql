-- +goose Up
-- What identifies a webhook that goes to a target only once, and for how long; NULL: all go.
--
-- forward_keys has a row for each delivery of an event that was identified: key is a hash of what identifies it, and NULL once the delivery was
-- skipped for same_as, the first event with it; received_at is that of the event. same_as is also what a delivery waits for.
CREATE TABLE forward_keys (
    forward     bigint PRIMARY KEY,
    target      bigint NOT NULL,
    event       bigint NOT NULL,
    received_at bigint NOT NULL,
    key         bytea,
    same_as     text
);
CREATE INDEX forward_keys_key ON forward_keys (target, key, received_at) WHERE key IS NOT NULL;
CREATE INDEX forward_keys_event ON forward_keys (event);
ALTER TABLE forwarding_targets ADD COLUMN dedupe_by text, ADD COLUMN dedupe_seconds bigint;

-- +goose Down
ALTER TABLE forwarding_targets DROP COLUMN dedupe_seconds, DROP COLUMN dedupe_by;
DROP TABLE forward_keys;
