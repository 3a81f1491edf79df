-- +goose Up
-- The rule of the endpoint that answered: its index, a space and its condition; NULL: none did.
--
-- The change itself takes no time at any size, but it waits for whoever reads payloads, such as a backup, and captures of nodes that still run
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
			ALTER TABLE payloads ADD COLUMN reply_rule TEXT;
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
ALTER TABLE payloads DROP COLUMN reply_rule;
