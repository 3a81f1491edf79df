-- +goose Up
-- Caught mails that were sent on through the relay. event is the seq of one; with it they go. A row is written before anything is sent; finished_at NULL:
-- it is under way, or its process died.
CREATE TABLE releases (
    num             INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT    NOT NULL,
    endpoint        INTEGER NOT NULL,
    event           INTEGER NOT NULL,
    event_id        TEXT    NOT NULL,
    recipients      TEXT    NOT NULL,
    status          TEXT    NOT NULL,
    relay_code      INTEGER,
    relay_message   TEXT,
    failure_code    TEXT,
    failure_message TEXT,
    created_at      INTEGER NOT NULL,
    finished_at     INTEGER
) STRICT;
CREATE UNIQUE INDEX releases_id ON releases (id);
CREATE INDEX releases_event ON releases (event, num);
CREATE INDEX releases_endpoint ON releases (endpoint);

-- +goose Down
DROP TABLE releases;
