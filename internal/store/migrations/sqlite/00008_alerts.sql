-- +goose Up
-- Where notifications go. sealed is the configuration with its credentials, shown what of it may be seen. The worker that holds the
-- lease sends what waits for the channel, one after the other; claim counts leases, so that who has lost one can not write.
-- events are the activity types that are pushed, as JSON; cursor is the seq up to which captures were. tries counts the attempts at
-- what is first in line, failures those that failed in a row, from failing_from on.
CREATE TABLE notification_channels (
    num               INTEGER PRIMARY KEY AUTOINCREMENT,
    id                TEXT    NOT NULL,
    workspace_id      INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name              TEXT    NOT NULL,
    kind              TEXT    NOT NULL,
    enabled           INTEGER NOT NULL,
    sealed            BLOB    NOT NULL,
    shown             TEXT    NOT NULL,
    events            TEXT    NOT NULL,
    follows           INTEGER NOT NULL,
    cursor            INTEGER NOT NULL,
    due_at            INTEGER NOT NULL,
    leased_until      INTEGER NOT NULL,
    claim             INTEGER NOT NULL,
    tries             INTEGER NOT NULL,
    failures          INTEGER NOT NULL,
    failing_from      INTEGER,
    disabled_at       INTEGER,
    disable_reason    TEXT,
    last_error        TEXT,
    last_delivered_at INTEGER,
    created_at        INTEGER NOT NULL,
    updated_at        INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX notification_channels_id ON notification_channels (id);
CREATE UNIQUE INDEX notification_channels_name ON notification_channels (workspace_id, name);
CREATE INDEX notification_channels_follows ON notification_channels (workspace_id, num) WHERE follows = 1;

-- What waits to be sent to a channel, in the order of num. key tells a message that was queued before; NULL: it is not looked for.
CREATE TABLE notifications (
    num        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT    NOT NULL,
    channel    INTEGER NOT NULL,
    key        TEXT,
    message    BLOB    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX notifications_channel ON notifications (channel, num);
CREATE UNIQUE INDEX notifications_key ON notifications (channel, key) WHERE key IS NOT NULL;

-- armed_at is when the alert began to watch. version counts changes, so that what was judged by an older configuration is not
-- written. cursor and matched_at are of keyword_match: the seq that was read to, and when the last match was received.
CREATE TABLE alerts (
    num        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT    NOT NULL,
    endpoint   INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    enabled    INTEGER NOT NULL,
    config     TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    changed_at INTEGER NOT NULL,
    armed_at   INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    cursor     INTEGER NOT NULL,
    matched_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX alerts_id ON alerts (id);
CREATE INDEX alerts_endpoint ON alerts (endpoint, num);

CREATE TABLE alert_channels (
    alert   INTEGER NOT NULL,
    channel INTEGER NOT NULL,
    PRIMARY KEY (alert, channel)
) STRICT;
CREATE INDEX alert_channels_channel ON alert_channels (channel);

CREATE TABLE alert_incidents (
    num         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT    NOT NULL,
    alert       INTEGER NOT NULL,
    event_id    TEXT,
    summary     TEXT    NOT NULL,
    resolution  TEXT,
    started_at  INTEGER NOT NULL,
    resolved_at INTEGER
) STRICT;
CREATE INDEX alert_incidents_alert ON alert_incidents (alert, num);

-- One attempt to deliver an event. bad marks the first attempt of a delivery that failed or was answered with 400 or more, final how
-- the delivery ended with this attempt, NULL: it goes on. rolled is 0 until figures count it.
CREATE TABLE outcomes (
    num      INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint INTEGER NOT NULL,
    event    INTEGER NOT NULL,
    source   TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    took     INTEGER,
    status   INTEGER,
    bad      INTEGER NOT NULL,
    final    TEXT,
    rolled   INTEGER NOT NULL
) STRICT;
CREATE INDEX outcomes_event ON outcomes (event);
CREATE INDEX outcomes_bad ON outcomes (endpoint, at) WHERE bad = 1;
CREATE INDEX outcomes_fresh ON outcomes (endpoint) WHERE rolled = 0;

-- Figures of an endpoint, by minutes (span 1) and by hours (span 60); start is in minutes of Unix time. The cursor, one row, is the seq
-- up to which they hold the events.
CREATE TABLE rollups (
    endpoint INTEGER NOT NULL,
    span     INTEGER NOT NULL,
    start    INTEGER NOT NULL,
    figures  TEXT    NOT NULL,
    PRIMARY KEY (endpoint, span, start)
) STRICT;
CREATE INDEX rollups_age ON rollups (span, start);

CREATE TABLE rollup_cursor (
    id  INTEGER NOT NULL PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT;

CREATE INDEX events_tagged ON events (endpoint, seq) WHERE tags IS NOT NULL;

-- +goose Down
DROP INDEX events_tagged;
DROP TABLE rollup_cursor;
DROP TABLE rollups;
DROP TABLE outcomes;
DROP TABLE alert_incidents;
DROP TABLE alert_channels;
DROP TABLE alerts;
DROP TABLE notifications;
DROP TABLE notification_channels;
