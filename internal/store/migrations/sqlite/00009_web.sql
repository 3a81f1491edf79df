-- +goose Up
-- Links by which anybody may read one event. The secret of a link is kept hashed.
CREATE TABLE shares (
    num        INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint   INTEGER NOT NULL,
    event      INTEGER NOT NULL,
    event_id   TEXT    NOT NULL,
    hash       BLOB    NOT NULL,
    created_by INTEGER,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX shares_hash ON shares (hash);
CREATE INDEX shares_event ON shares (endpoint, event);
CREATE INDEX shares_expiry ON shares (expires_at);

CREATE TABLE saved_searches (
    num        INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint   INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    query      TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX saved_searches_name ON saved_searches (endpoint, name);

-- What a browser said of itself when its session began.
ALTER TABLE sessions ADD COLUMN client TEXT;
CREATE INDEX sessions_user ON sessions (user_id);

-- +goose Down
DROP INDEX sessions_user;
ALTER TABLE sessions DROP COLUMN client;
DROP TABLE saved_searches;
DROP TABLE shares;
