-- +goose Up
-- Which events go to a target, as a search; NULL: all of them.
ALTER TABLE forwarding_targets ADD COLUMN condition text;

-- +goose Down
ALTER TABLE forwarding_targets DROP COLUMN condition;
