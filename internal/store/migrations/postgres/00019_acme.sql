-- +goose Up
-- What the nodes share of the certificates that ACME gives them: account key, certificates, and answers to challenges under way.
CREATE TABLE acme (
    name       text   NOT NULL PRIMARY KEY,
    sealed     bytea  NOT NULL,
    updated_at bigint NOT NULL
);

-- +goose Down
DROP TABLE acme;
