-- +goose Up
-- What identifies a webhook that goes to a target only once, and for how long; NULL: all go.
--
-- forward_keys has a row for each delivery of an event that was identified: key is a hash of what identifies it, and NULL once the delivery was
-- skipped for same_as, the first event with it; received_at is that of the event. same_as is also what a delivery waits for.
--
-- The change of targets takes no time at any size, but it waits for whoever reads them, such as a backup, and captures of nodes that still run
-- wait behind it. So it waits a moment at a time.
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
SET LOCAL statement_timeout = 0;
-- +goose StatementBegin
DO $$
DECLARE
	tries int := 0;
BEGIN
	PERFORM set_config('lock_timeout', '200ms', true);
	LOOP
		BEGIN
			ALTER TABLE forwarding_targets ADD COLUMN dedupe_by text, ADD COLUMN dedupe_seconds bigint;
			EXIT;
		EXCEPTION WHEN lock_not_available THEN
			tries := tries + 1;
			IF tries > 3600 THEN
				RAISE;
			END IF;
		END;
		PERFORM pg_sleep(1);
	END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
ALTER TABLE forwarding_targets DROP COLUMN dedupe_seconds, DROP COLUMN dedupe_by;
DROP TABLE forward_keys;
