-- +goose Up
-- response_script is what the attempts of a delivery are answered one after another, as text; NULL: there is none.
ALTER TABLE endpoints ADD COLUMN response_script TEXT;
ALTER TABLE endpoints ADD COLUMN schema_tracking INTEGER NOT NULL DEFAULT 0;

-- How many attempts of a delivery came to an endpoint with a script. identity is a hash of what tells the delivery from others,
-- script the one that position counts in.
CREATE TABLE script_positions (
    endpoint INTEGER NOT NULL,
    identity BLOB    NOT NULL,
    script   TEXT    NOT NULL,
    position INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (endpoint, identity)
) STRICT;
CREATE INDEX script_positions_age ON script_positions (endpoint, at);

-- What is known of the bodies of one event type: observed is the schema since the baseline was accepted, baseline the accepted one, both
-- as JSON. version counts changes, so that what was made from an older one is not written. drifts counts the ways in which observed
-- departs from the baseline, summary names some of them by pointer and type.
CREATE TABLE event_schemas (
    num         INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint    INTEGER NOT NULL,
    provider    TEXT    NOT NULL,
    event_type  TEXT    NOT NULL,
    version     INTEGER NOT NULL,
    observed    TEXT    NOT NULL,
    events      INTEGER NOT NULL,
    baseline    TEXT,
    accepted_at INTEGER,
    drifts      INTEGER NOT NULL,
    drift_event TEXT,
    summary     TEXT    NOT NULL,
    first_at    INTEGER NOT NULL,
    last_at     INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX event_schemas_type ON event_schemas (endpoint, provider, event_type);

-- +goose Down
DROP TABLE event_schemas;
DROP TABLE script_positions;
ALTER TABLE endpoints DROP COLUMN schema_tracking;
ALTER TABLE endpoints DROP COLUMN response_script;
