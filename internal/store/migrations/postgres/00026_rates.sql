-- +goose Up
-- How fast a target is sent to at most: rate_limit deliveries in rate_period seconds; NULL: as fast as they come. rate_next is when the next one may
-- go; NULL: at once.
ALTER TABLE forwarding_targets ADD COLUMN rate_limit bigint, ADD COLUMN rate_period bigint, ADD COLUMN rate_next bigint;

-- +goose Down
ALTER TABLE forwarding_targets DROP COLUMN rate_next, DROP COLUMN rate_period, DROP COLUMN rate_limit;
