-- +goose Up
-- What a file of endpoints declared (docs/endpoints-file.md). ref is the id of the thing, '' for the endpoint itself; name is what the file calls
-- it. made is 1 for what would not be there without the file: that alone may be deleted once the file no longer names it.
CREATE TABLE declared (
    num          INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace_id INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    file_set     TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    endpoint     INTEGER NOT NULL,
    ref          TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    made         INTEGER NOT NULL,
    declared_at  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX declared_ref ON declared (endpoint, kind, ref);
CREATE INDEX declared_set ON declared (workspace_id, file_set, num);

-- How far this database has been filled from another (docs/moving.md): one row, and one for each table. Neither is in a dump.
CREATE TABLE moves (
    id          INTEGER NOT NULL PRIMARY KEY,
    source      BLOB    NOT NULL,
    state       TEXT    NOT NULL,
    started_at  INTEGER NOT NULL,
    finished_at INTEGER
) STRICT;

-- after is the key of the last row that is here; NULL: none is yet.
CREATE TABLE move_tables (
    name   TEXT    NOT NULL PRIMARY KEY,
    after  BLOB,
    n      INTEGER NOT NULL,
    bytes  INTEGER NOT NULL,
    done   INTEGER NOT NULL
) STRICT;

-- +goose Down
DROP TABLE move_tables;
DROP TABLE moves;
DROP TABLE declared;
