-- +goose Up
-- How fast a target is sent to at most: rate_limit deliveries in rate_period seconds; NULL: as fast as they come. rate_next is when the next one may
-- go; NULL: at once.
--
-- The change itself takes no time at any size, but it waits for whoever reads targets, such as a backup, and captures of nodes that still run
-- wait behind it. So it waits a moment at a time.
SET LOCAL statement_timeout = 0;
-- +goose StatementBegin
DO $$
DECLARE
	tries int := 0;
BEGIN
	PERFORM set_config('lock_timeout', '200ms', true);
	LOOP
		BEGIN
			ALTER TABLE forwarding_targets ADD COLUMN rate_limit bigint, ADD COLUMN rate_period bigint, ADD COLUMN rate_next bigint;
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
ALTER TABLE forwarding_targets DROP COLUMN rate_next, DROP COLUMN rate_period, DROP COLUMN rate_limit;
