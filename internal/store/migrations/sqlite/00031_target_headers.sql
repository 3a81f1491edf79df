-- +goose Up
-- The headers that a target adds to what it is sent: their names as JSON, and all of them sealed; NULL: none.
ALTER TABLE forwarding_targets ADD COLUMN header_names TEXT;
ALTER TABLE forwarding_targets ADD COLUMN sealed BLOB;

-- +goose Down
ALTER TABLE forwarding_targets DROP COLUMN sealed;
ALTER TABLE forwarding_targets DROP COLUMN header_names;
