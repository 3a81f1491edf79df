-- +goose Up
-- Events that people wrote a note on, which are few among very many: a search for notes reads them alone. Making it reads
-- the events once, a fraction of a second for a million.
--
-- It waits for whoever reads or writes events, and captures of nodes that still run wait behind it. So it waits a moment at
-- a time.
SET LOCAL statement_timeout = 0;
-- +goose StatementBegin
DO $$
DECLARE
	tries int := 0;
BEGIN
	PERFORM set_config('lock_timeout', '200ms', true);
	LOOP
		BEGIN
			CREATE INDEX events_noted ON events (endpoint, seq) WHERE note IS NOT NULL;
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
DROP INDEX events_noted;
