-- +goose Up
-- One-time tickets for the socket, by their SHA-256. token is the API token that asked, 0 for an anonymous one, which is bound to its endpoint.
CREATE TABLE tunnel_tickets (
    hash         BLOB    NOT NULL PRIMARY KEY,
    endpoint     INTEGER NOT NULL,
    account_id   INTEGER NOT NULL,
    workspace_id INTEGER NOT NULL,
    user_id      INTEGER NOT NULL,
    token        INTEGER NOT NULL,
    client       BLOB    NOT NULL,
    expires_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX tunnel_tickets_expiry ON tunnel_tickets (expires_at);

-- Clients that a ticket was given to, with the SHA-256 of the credential by which they report. account_id is 0 where endpoint is all that is theirs.
CREATE TABLE tunnel_clients (
    id         TEXT    NOT NULL PRIMARY KEY,
    hash       BLOB    NOT NULL,
    account_id INTEGER NOT NULL,
    endpoint   INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX tunnel_clients_age ON tunnel_clients (created_at);

-- Processes that hold sockets. The sessions of one whose lease has ended are nobody's any more.
CREATE TABLE tunnel_nodes (
    id          TEXT    NOT NULL PRIMARY KEY,
    seen_at     INTEGER NOT NULL,
    lease_until INTEGER NOT NULL
) STRICT;

CREATE TABLE tunnel_sessions (
    num          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT    NOT NULL,
    node         TEXT    NOT NULL,
    client_id    TEXT    NOT NULL,
    client       BLOB    NOT NULL,
    connected_at INTEGER NOT NULL
) STRICT;
CREATE INDEX tunnel_sessions_node ON tunnel_sessions (node);
CREATE INDEX tunnel_sessions_client ON tunnel_sessions (client_id);

-- Its events begin behind begins, and the other side is known to have received them up to received.
CREATE TABLE tunnel_subscriptions (
    num           INTEGER PRIMARY KEY AUTOINCREMENT,
    session       INTEGER NOT NULL,
    endpoint      INTEGER NOT NULL,
    begins        INTEGER NOT NULL,
    received      INTEGER NOT NULL,
    target_url    TEXT    NOT NULL,
    hostname      TEXT    NOT NULL,
    reports       INTEGER NOT NULL,
    replays       INTEGER NOT NULL,
    subscribed_at INTEGER NOT NULL
) STRICT;
CREATE INDEX tunnel_subscriptions_session ON tunnel_subscriptions (session);
CREATE INDEX tunnel_subscriptions_endpoint ON tunnel_subscriptions (endpoint);

-- What clients said of deliveries. event is the seq of one; with it they go.
CREATE TABLE tunnel_reports (
    num         INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint    INTEGER NOT NULL,
    event       INTEGER NOT NULL,
    attempt_id  TEXT,
    version     INTEGER NOT NULL,
    status      INTEGER NOT NULL,
    reported_at INTEGER NOT NULL,
    record      BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX tunnel_reports_attempt ON tunnel_reports (endpoint, attempt_id);
CREATE INDEX tunnel_reports_event ON tunnel_reports (event, num);

-- Where an event stands: a row from its first report on. delivered_at is of the first success, which nothing takes back.
CREATE TABLE tunnel_events (
    event        INTEGER NOT NULL PRIMARY KEY,
    endpoint     INTEGER NOT NULL,
    reported_at  INTEGER NOT NULL,
    delivered_at INTEGER,
    reports      INTEGER NOT NULL
) STRICT;
CREATE INDEX tunnel_events_endpoint ON tunnel_events (endpoint);

-- Outages: the events above from_seq, up to to_seq once a session is back, that were not reported before the outage was noticed. What was erased
-- of them is counted in recovered_gone and expired_gone.
CREATE TABLE tunnel_gaps (
    num            INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT    NOT NULL,
    endpoint       INTEGER NOT NULL,
    state          TEXT    NOT NULL,
    from_seq       INTEGER NOT NULL,
    to_seq         INTEGER,
    started_at     INTEGER NOT NULL,
    detected_at    INTEGER NOT NULL,
    reconnected_at INTEGER,
    target_url     TEXT    NOT NULL,
    hostname       TEXT    NOT NULL,
    outcome        TEXT,
    recovered_gone INTEGER NOT NULL,
    expired_gone   INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX tunnel_gaps_id ON tunnel_gaps (id);
CREATE UNIQUE INDEX tunnel_gaps_open ON tunnel_gaps (endpoint) WHERE state = 'open';
CREATE INDEX tunnel_gaps_endpoint ON tunnel_gaps (endpoint, num);

-- Requests that one session's client makes for a replay. sent_at is the marker that it may have been given to the client.
CREATE TABLE tunnel_commands (
    num         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT    NOT NULL,
    endpoint    INTEGER NOT NULL,
    session     INTEGER NOT NULL,
    hash        BLOB    NOT NULL,
    request     BLOB    NOT NULL,
    result      BLOB,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    sent_at     INTEGER,
    answered_at INTEGER
) STRICT;
CREATE UNIQUE INDEX tunnel_commands_id ON tunnel_commands (id);
CREATE INDEX tunnel_commands_session ON tunnel_commands (session, num);
CREATE INDEX tunnel_commands_expiry ON tunnel_commands (expires_at);
CREATE INDEX tunnel_commands_endpoint ON tunnel_commands (endpoint);

-- +goose Down
DROP TABLE tunnel_commands;
DROP TABLE tunnel_gaps;
DROP TABLE tunnel_events;
DROP TABLE tunnel_reports;
DROP TABLE tunnel_subscriptions;
DROP TABLE tunnel_sessions;
DROP TABLE tunnel_nodes;
DROP TABLE tunnel_clients;
DROP TABLE tunnel_tickets;
