-- +goose NO TRANSACTION
-- +goose Up
-- Lists of runs are in the order of their ids, that is of creation. Numbers are in the order of storing.
--
-- Runs and lists of them go on while the indexes are made, which waits for every transaction that was begun before. What
-- an earlier try left unfinished goes first, and what nodes that still run use goes last.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS action_runs_action_id;
CREATE INDEX CONCURRENTLY action_runs_action_id ON action_runs (action, id COLLATE "C");
DROP INDEX CONCURRENTLY IF EXISTS action_runs_endpoint_id;
CREATE INDEX CONCURRENTLY action_runs_endpoint_id ON action_runs (endpoint, id COLLATE "C");
DROP INDEX CONCURRENTLY IF EXISTS action_runs_action;
DROP INDEX CONCURRENTLY IF EXISTS action_runs_endpoint;
ALTER INDEX action_runs_action_id RENAME TO action_runs_action;
ALTER INDEX action_runs_endpoint_id RENAME TO action_runs_endpoint;
SET lock_timeout = '200ms';

-- +goose Down
DROP INDEX action_runs_endpoint;
DROP INDEX action_runs_action;
CREATE INDEX action_runs_action ON action_runs (action, num);
CREATE INDEX action_runs_endpoint ON action_runs (endpoint, num);
