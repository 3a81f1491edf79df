-- +goose Up
-- What was sent in each attempt of a delivery, and what was answered. event is the seq of the delivery's; with it they go.
CREATE TABLE forward_evidence (
    num     INTEGER PRIMARY KEY AUTOINCREMENT,
    forward INTEGER NOT NULL,
    event   INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    record  BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX forward_evidence_forward ON forward_evidence (forward, attempt);
CREATE INDEX forward_evidence_event ON forward_evidence (event);

-- Final runs and bulk replays are purged by their age.
CREATE INDEX replay_case_runs_final ON replay_case_runs (endpoint, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX replay_batches_final ON replay_batches (endpoint, finished_at) WHERE finished_at IS NOT NULL;

-- +goose Down
DROP INDEX replay_batches_final;
DROP INDEX replay_case_runs_final;
DROP TABLE forward_evidence;
