-- +goose Up
-- The rule of the endpoint that answered: its index, a space and its condition; NULL: none did.
ALTER TABLE payloads ADD COLUMN reply_rule TEXT;

-- +goose Down
ALTER TABLE payloads DROP COLUMN reply_rule;
