-- +goose Up
-- Lists of runs are in the order of their ids, that is of creation. Numbers are in the order of storing.
DROP INDEX action_runs_action;
DROP INDEX action_runs_endpoint;
CREATE INDEX action_runs_action ON action_runs (action, id);
CREATE INDEX action_runs_endpoint ON action_runs (endpoint, id);

-- +goose Down
DROP INDEX action_runs_endpoint;
DROP INDEX action_runs_action;
CREATE INDEX action_runs_action ON action_runs (action, num);
CREATE INDEX action_runs_endpoint ON action_runs (endpoint, num);
