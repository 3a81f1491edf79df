-- +goose Up
CREATE TABLE users (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    email      TEXT    NOT NULL UNIQUE,
    name       TEXT    NOT NULL,
    password   TEXT,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE accounts (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    name           TEXT    NOT NULL,
    plan           TEXT    NOT NULL,
    subscription   TEXT    NOT NULL,
    payment_method INTEGER NOT NULL,
    retention      INTEGER NOT NULL,
    created_at     INTEGER NOT NULL
) STRICT;

CREATE TABLE members (
    account_id INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    user_id    INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    role       TEXT    NOT NULL,
    PRIMARY KEY (account_id, user_id)
) STRICT;
CREATE INDEX members_user ON members (user_id);

CREATE TABLE workspaces (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name       TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX workspaces_account ON workspaces (account_id);

CREATE TABLE tokens (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id      INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    account_id   INTEGER NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    workspace_id INTEGER REFERENCES workspaces (id) ON DELETE CASCADE,
    name         TEXT    NOT NULL,
    level        TEXT    NOT NULL,
    scopes       TEXT    NOT NULL,
    hash         BLOB    NOT NULL UNIQUE,
    hint         TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER
) STRICT;
CREATE INDEX tokens_user ON tokens (user_id);

-- Browser sessions, and the one-time links that start one.
CREATE TABLE sessions (
    hash       BLOB    NOT NULL PRIMARY KEY,
    kind       TEXT    NOT NULL,
    user_id    INTEGER REFERENCES users (id) ON DELETE CASCADE,
    data       BLOB,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_expiry ON sessions (expires_at);

CREATE TABLE endpoints (
    num              INTEGER PRIMARY KEY AUTOINCREMENT,
    id               TEXT    NOT NULL,
    account_id       INTEGER REFERENCES accounts (id),
    workspace_id     INTEGER REFERENCES workspaces (id),
    name             TEXT    NOT NULL,
    kind             TEXT    NOT NULL,
    custom_id        TEXT,
    provider         TEXT,
    provider_config  TEXT    NOT NULL,
    email_local_part TEXT,
    enabled          INTEGER NOT NULL,
    response         TEXT,
    tunnel_key_hash  BLOB,
    expires_at       INTEGER,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    deleted_at       INTEGER
) STRICT;
CREATE UNIQUE INDEX endpoints_id ON endpoints (id);
CREATE UNIQUE INDEX endpoints_custom_id ON endpoints (custom_id);
CREATE UNIQUE INDEX endpoints_email_local_part ON endpoints (email_local_part);
CREATE UNIQUE INDEX endpoints_tunnel_key_hash ON endpoints (tunnel_key_hash);
CREATE INDEX endpoints_workspace ON endpoints (workspace_id);
CREATE INDEX endpoints_account ON endpoints (account_id);

-- What capture writes for each endpoint, apart from what people write. Events up to floor_seq are
-- deleted: they are unseen at once and erased in the background.
CREATE TABLE endpoint_stats (
    endpoint      INTEGER NOT NULL PRIMARY KEY,
    event_count   INTEGER NOT NULL,
    ignored_count INTEGER NOT NULL,
    refused_count INTEGER NOT NULL,
    last_event_at INTEGER,
    floor_seq     INTEGER NOT NULL
) STRICT;

CREATE TABLE signature_configs (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint   INTEGER NOT NULL,
    provider   TEXT    NOT NULL,
    enabled    INTEGER NOT NULL,
    options    TEXT    NOT NULL,
    sealed     BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX signature_configs_provider ON signature_configs (endpoint, provider);

-- The narrow part of an event, which lists and filters read. payloads has the rest.
CREATE TABLE events (
    seq              INTEGER PRIMARY KEY AUTOINCREMENT,
    id               TEXT    NOT NULL,
    endpoint         INTEGER NOT NULL,
    type             TEXT    NOT NULL,
    received_at      INTEGER NOT NULL,
    method           TEXT    NOT NULL,
    path             TEXT    NOT NULL,
    raw_query        TEXT    NOT NULL,
    content_type     TEXT,
    ip               TEXT,
    size             INTEGER NOT NULL,
    provider         TEXT    NOT NULL,
    event_type       TEXT,
    event_ref        TEXT,
    delivery_id      TEXT,
    signature_status TEXT    NOT NULL,
    signature_reason TEXT,
    status           INTEGER,
    ignored          TEXT,
    tags             TEXT,
    mail_from        TEXT,
    mail_to          TEXT,
    subject          TEXT
) STRICT;
CREATE UNIQUE INDEX events_id ON events (id);
CREATE INDEX events_endpoint ON events (endpoint, seq);

CREATE TABLE payloads (
    seq           INTEGER PRIMARY KEY,
    url           TEXT    NOT NULL,
    proto         TEXT    NOT NULL,
    headers       BLOB    NOT NULL,
    trailers      BLOB,
    body          BLOB,
    reply_status  INTEGER,
    reply_source  TEXT,
    reply_delay   INTEGER,
    reply_headers BLOB,
    reply_body    BLOB
) STRICT;

CREATE TABLE tags (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace_id INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name         TEXT    NOT NULL,
    color        TEXT,
    created_at   INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX tags_name ON tags (workspace_id, name);

-- What the feed shows besides captured events, which it reads from events.
CREATE TABLE activities (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    account_id  INTEGER NOT NULL,
    endpoint    INTEGER NOT NULL,
    type        TEXT    NOT NULL,
    occurred_at INTEGER NOT NULL,
    event_id    TEXT,
    data        TEXT    NOT NULL
) STRICT;
CREATE INDEX activities_account ON activities (account_id, id);
CREATE INDEX activities_endpoint ON activities (endpoint);

-- Rate limits (GCRA): tat is the theoretical arrival time of the next call, in microseconds.
CREATE TABLE rate_limits (
    bucket TEXT    NOT NULL PRIMARY KEY,
    tat    INTEGER NOT NULL
) STRICT;

-- +goose Down
DROP TABLE rate_limits;
DROP TABLE activities;
DROP TABLE tags;
DROP TABLE payloads;
DROP TABLE events;
DROP TABLE signature_configs;
DROP TABLE endpoint_stats;
DROP TABLE endpoints;
DROP TABLE sessions;
DROP TABLE tokens;
DROP TABLE workspaces;
DROP TABLE members;
DROP TABLE accounts;
DROP TABLE users;
