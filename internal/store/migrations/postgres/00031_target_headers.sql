-- +goose Up
-- The headers that a target adds to what it is sent: their names as JSON, and all of them sealed; NULL: none.
ALTER TABLE forwarding_targets ADD COLUMN header_names text, ADD COLUMN sealed bytea;

-- +goose Down
ALTER TABLE forwarding_targets DROP COLUMN sealed, DROP COLUMN header_names;
