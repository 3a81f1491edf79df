-- +goose Up
-- What is still to be done with captured events. due_at is when, or when the lease of who does it ends. A row that is
-- done is deleted. claim counts leases, so that who has lost one can not write; lost counts leases that ended without a word.
CREATE TABLE event_tasks (
    num      INTEGER PRIMARY KEY AUTOINCREMENT,
    kind     TEXT    NOT NULL,
    endpoint INTEGER NOT NULL,
    event    INTEGER NOT NULL,
    due_at   INTEGER NOT NULL,
    leased   INTEGER NOT NULL,
    claim    INTEGER NOT NULL,
    lost     INTEGER NOT NULL
) STRICT;
CREATE INDEX event_tasks_due ON event_tasks (kind, endpoint, due_at, num);

-- +goose Down
DROP TABLE event_tasks;
