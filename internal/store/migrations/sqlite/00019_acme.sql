-- +goose Up
-- What the nodes share of the certificates that ACME gives them: account key, certificates, and answers to challenges under way.
CREATE TABLE acme (
    name       TEXT    NOT NULL PRIMARY KEY,
    sealed     BLOB    NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

-- +goose Down
DROP TABLE acme;
