-- +goose Up
-- From when on figures count what is erased and refused: what was erased before is in no book.
ALTER TABLE rollup_cursor ADD COLUMN books_at INTEGER NOT NULL DEFAULT 0;
UPDATE rollup_cursor SET books_at = cast(unixepoch('subsec') * 1000000 AS INTEGER);

-- Expectations over the events of several endpoints. definition is what was asked for, progress how far it is, both JSON. cursor is the seq up
-- to which events were judged. leased_until is when a flow that is not final is nobody's; claim counts leases, so that who has lost one can
-- not write. version counts changes that people see.
CREATE TABLE flows (
    num             INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT    NOT NULL,
    account_id      INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    workspace_id    INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name            TEXT    NOT NULL,
    state           TEXT    NOT NULL,
    definition      BLOB    NOT NULL,
    progress        BLOB    NOT NULL,
    cursor          INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    claim           INTEGER NOT NULL,
    leased_until    INTEGER NOT NULL,
    idempotency_key TEXT,
    fingerprint     BLOB    NOT NULL,
    started_at      INTEGER NOT NULL,
    deadline_at     INTEGER NOT NULL,
    finished_at     INTEGER
) STRICT;
CREATE UNIQUE INDEX flows_id ON flows (id);
CREATE UNIQUE INDEX flows_idempotency_key ON flows (workspace_id, idempotency_key);
CREATE INDEX flows_workspace ON flows (workspace_id, num);
CREATE INDEX flows_live ON flows (account_id, num) WHERE finished_at IS NULL;
CREATE INDEX flows_lease ON flows (leased_until) WHERE finished_at IS NULL;
CREATE INDEX flows_final ON flows (finished_at) WHERE finished_at IS NOT NULL;

-- +goose Down
DROP TABLE flows;
ALTER TABLE rollup_cursor DROP COLUMN books_at;
