-- +goose Up
-- The headers that a target adds to what it is sent: their names as JSON, and all of them sealed; NULL: none.
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
			ALTER TABLE forwarding_targets ADD COLUMN header_names text, ADD COLUMN sealed bytea;
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
ALTER TABLE forwarding_targets DROP COLUMN sealed, DROP COLUMN header_names;
