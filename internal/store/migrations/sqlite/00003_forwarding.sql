-- +goose Up
-- failures counts deliveries that failed in a row, from failing_from on.
CREATE TABLE forwarding_targets (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint        INTEGER NOT NULL,
    name            TEXT    NOT NULL,
    url             TEXT    NOT NULL,
    enabled         INTEGER NOT NULL,
    timeout_seconds INTEGER NOT NULL,
    retry_count     INTEGER NOT NULL,
    failures        INTEGER NOT NULL,
    failing_from    INTEGER,
    paused_at       INTEGER,
    pause_reason    TEXT,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX forwarding_targets_endpoint ON forwarding_targets (endpoint, id);

-- One event on its way to one target. due_at is when it is sent, or when the lease of who sends it ends; NULL when its state is final.
-- claim counts leases, so that who has lost one can not write. lost counts leases that ended without a word.
CREATE TABLE forwards (
    num         INTEGER PRIMARY KEY AUTOINCREMENT,
    target      INTEGER NOT NULL,
    endpoint    INTEGER NOT NULL,
    event       INTEGER NOT NULL,
    state       TEXT    NOT NULL,
    due_at      INTEGER,
    claim       INTEGER NOT NULL,
    lost        INTEGER NOT NULL,
    status      INTEGER,
    attempts    BLOB,
    created_at  INTEGER NOT NULL,
    finished_at INTEGER
) STRICT;
CREATE UNIQUE INDEX forwards_event ON forwards (event, target);
CREATE INDEX forwards_target ON forwards (target, num);
CREATE INDEX forwards_due ON forwards (target, due_at, num) WHERE due_at IS NOT NULL;

-- +goose Down
DROP TABLE forwards;
DROP TABLE forwarding_targets;
