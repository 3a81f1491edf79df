-- +goose Up
-- Answers to some of the webhooks of an endpoint, as JSON; NULL: none.
ALTER TABLE endpoints ADD COLUMN response_rules TEXT;

-- +goose Down
ALTER TABLE endpoints DROP COLUMN response_rules;
