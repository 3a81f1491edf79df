-- +goose Up
-- Lists of runs are in the order of their ids, that is of creation. Numbers are in the order of storing.
--
-- Making the indexes reads the runs, some seconds for a million. It waits for whoever reads or writes runs, and those that
-- come later wait behind it. So it waits a moment at a time.
SET LOCAL statement_timeout = 0;
-- +goose StatementBegin
DO $$
DECLARE
	tries int := 0;
BEGIN
	PERFORM set_config('lock_timeout', '200ms', true);
	LOOP
		BEGIN
			DROP INDEX action_runs_action;
			DROP INDEX action_runs_endpoint;
			CREATE INDEX action_runs_action ON action_runs (action, id COLLATE "C");
			CREATE INDEX action_runs_endpoint ON action_runs (endpoint, id COLLATE "C");
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
DROP INDEX action_runs_endpoint;
DROP INDEX action_runs_action;
CREATE INDEX action_runs_action ON action_runs (action, num);
CREATE INDEX action_runs_endpoint ON action_runs (endpoint, num);
