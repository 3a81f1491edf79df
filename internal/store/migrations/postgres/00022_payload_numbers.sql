-- +goose Up
-- Captures are copied into both tables in one transaction, and the numbers of the payloads are those that the events were given just before:
-- each group sets this sequence to the first of them, under the lock that lets one group at a time take numbers.
CREATE SEQUENCE payloads_seq_seq;

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
			ALTER TABLE payloads ALTER seq SET DEFAULT nextval('payloads_seq_seq');
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
ALTER TABLE payloads ALTER seq DROP DEFAULT;
DROP SEQUENCE payloads_seq_seq CASCADE;
