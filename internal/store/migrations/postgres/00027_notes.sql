-- +goose Up
-- What people write on an event; NULL: nothing.
ALTER TABLE events ADD COLUMN note text;

-- +goose Down
ALTER TABLE events DROP COLUMN note;
