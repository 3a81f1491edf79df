-- +goose Up
-- conditions and steps are JSON. position runs from 1 without gaps in each endpoint.
CREATE TABLE actions (
    num            INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT    NOT NULL,
    endpoint       INTEGER NOT NULL,
    name           TEXT    NOT NULL,
    enabled        INTEGER NOT NULL,
    failure_policy TEXT    NOT NULL,
    position       INTEGER NOT NULL,
    conditions     TEXT    NOT NULL,
    steps          TEXT    NOT NULL,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX actions_id ON actions (id);
CREATE INDEX actions_endpoint ON actions (endpoint, position);

-- What steps refer to: kind is secret or tag, target the num or id of one.
CREATE TABLE action_refs (
    kind   TEXT    NOT NULL,
    target INTEGER NOT NULL,
    action INTEGER NOT NULL,
    step   TEXT    NOT NULL,
    PRIMARY KEY (kind, target, action, step)
) STRICT;
CREATE INDEX action_refs_action ON action_refs (action);

-- A run outlives its action, not its event. trace is redacted. checkpoint is what it takes to go on, sealed; NULL when final.
-- due_at is when a run that is not final counts as nobody's. claim counts who had it, so that who has lost it can not write.
CREATE TABLE action_runs (
    num         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT    NOT NULL,
    endpoint    INTEGER NOT NULL,
    action      INTEGER NOT NULL,
    action_id   TEXT    NOT NULL,
    event       INTEGER NOT NULL,
    event_id    TEXT    NOT NULL,
    parent_id   TEXT,
    rerun       INTEGER NOT NULL,
    status      TEXT    NOT NULL,
    trace       BLOB,
    checkpoint  BLOB,
    claim       INTEGER NOT NULL,
    due_at      INTEGER,
    created_at  INTEGER NOT NULL,
    started_at  INTEGER,
    finished_at INTEGER
) STRICT;
CREATE UNIQUE INDEX action_runs_id ON action_runs (id);
CREATE UNIQUE INDEX action_runs_first ON action_runs (event, action) WHERE rerun = 0;
CREATE INDEX action_runs_event ON action_runs (event);
CREATE INDEX action_runs_action ON action_runs (action, num);
CREATE INDEX action_runs_endpoint ON action_runs (endpoint, num);
CREATE INDEX action_runs_due ON action_runs (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE action_secrets (
    num          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT    NOT NULL,
    workspace_id INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name         TEXT    NOT NULL,
    description  TEXT    NOT NULL,
    sealed       BLOB    NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    last_used_at INTEGER
) STRICT;
CREATE UNIQUE INDEX action_secrets_id ON action_secrets (id);
CREATE UNIQUE INDEX action_secrets_name ON action_secrets (workspace_id, name);

-- Figures on runs by the hour, which is in hours of Unix time. name is one of a fixed set of words and codes.
CREATE TABLE action_totals (
    endpoint INTEGER NOT NULL,
    hour     INTEGER NOT NULL,
    name     TEXT    NOT NULL,
    n        INTEGER NOT NULL,
    PRIMARY KEY (endpoint, hour, name)
) STRICT;

-- +goose Down
DROP TABLE action_totals;
DROP TABLE action_secrets;
DROP TABLE action_runs;
DROP TABLE action_refs;
DROP TABLE actions;
