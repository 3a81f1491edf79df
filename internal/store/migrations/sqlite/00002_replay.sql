-- +goose Up
-- Attempts to deliver captured events again. event is the seq of one; with it they go.
CREATE TABLE replays (
    num         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT    NOT NULL,
    endpoint    INTEGER NOT NULL,
    event       INTEGER NOT NULL,
    event_id    TEXT    NOT NULL,
    target_url  TEXT    NOT NULL,
    passed      INTEGER NOT NULL,
    replayed_at INTEGER NOT NULL,
    record      BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX replays_id ON replays (id);
CREATE INDEX replays_event ON replays (event, num);
CREATE INDEX replays_endpoint ON replays (endpoint);

-- sealed is what people wrote, snapshot the event: both encrypted, bound to the id.
CREATE TABLE replay_cases (
    num              INTEGER PRIMARY KEY AUTOINCREMENT,
    id               TEXT    NOT NULL,
    endpoint         INTEGER NOT NULL,
    source_id        TEXT    NOT NULL,
    lock_version     INTEGER NOT NULL,
    snapshot_version INTEGER NOT NULL,
    sealed           BLOB    NOT NULL,
    snapshot         BLOB    NOT NULL,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX replay_cases_id ON replay_cases (id);
CREATE INDEX replay_cases_endpoint ON replay_cases (endpoint, num);

-- started_at is the marker that the request may have been sent. A run outlives its case.
CREATE TABLE replay_case_runs (
    num              INTEGER PRIMARY KEY AUTOINCREMENT,
    id               TEXT    NOT NULL,
    endpoint         INTEGER NOT NULL,
    case_num         INTEGER NOT NULL,
    case_id          TEXT    NOT NULL,
    lock_version     INTEGER NOT NULL,
    snapshot_version INTEGER NOT NULL,
    idempotency_key  TEXT    NOT NULL,
    state            TEXT    NOT NULL,
    sealed           BLOB    NOT NULL,
    result           BLOB,
    created_at       INTEGER NOT NULL,
    enqueued_at      INTEGER NOT NULL,
    started_at       INTEGER,
    finished_at      INTEGER
) STRICT;
CREATE UNIQUE INDEX replay_case_runs_id ON replay_case_runs (id);
CREATE UNIQUE INDEX replay_case_runs_key ON replay_case_runs (case_num, idempotency_key);
CREATE INDEX replay_case_runs_endpoint ON replay_case_runs (endpoint, num);
CREATE INDEX replay_case_runs_case ON replay_case_runs (case_num, num);
CREATE INDEX replay_case_runs_open ON replay_case_runs (state) WHERE finished_at IS NULL;

CREATE TABLE replay_batches (
    num             INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT    NOT NULL,
    endpoint        INTEGER NOT NULL,
    query           TEXT    NOT NULL,
    target_url      TEXT    NOT NULL,
    identity_mode   TEXT    NOT NULL,
    signature_mode  TEXT    NOT NULL,
    rate            INTEGER NOT NULL,
    stop_on_failure INTEGER NOT NULL,
    state           TEXT    NOT NULL,
    total           INTEGER NOT NULL,
    passed          INTEGER NOT NULL,
    failed          INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    finished_at     INTEGER
) STRICT;
CREATE UNIQUE INDEX replay_batches_id ON replay_batches (id);
CREATE INDEX replay_batches_endpoint ON replay_batches (endpoint, num);
CREATE INDEX replay_batches_open ON replay_batches (state) WHERE finished_at IS NULL;

CREATE TABLE replay_batch_items (
    num         INTEGER PRIMARY KEY AUTOINCREMENT,
    batch       INTEGER NOT NULL,
    event       INTEGER NOT NULL,
    event_id    TEXT    NOT NULL,
    state       TEXT    NOT NULL,
    replay_id   TEXT,
    status      INTEGER,
    error_code  TEXT,
    error_text  TEXT,
    started_at  INTEGER,
    finished_at INTEGER
) STRICT;
CREATE UNIQUE INDEX replay_batch_items_event ON replay_batch_items (batch, event);
CREATE INDEX replay_batch_items_open ON replay_batch_items (batch, state, event) WHERE finished_at IS NULL;

-- +goose Down
DROP TABLE replay_batch_items;
DROP TABLE replay_batches;
DROP TABLE replay_case_runs;
DROP TABLE replay_cases;
DROP TABLE replays;
