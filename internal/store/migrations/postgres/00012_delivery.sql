-- +goose Up
-- What an attempt says beside the one before it to the same target. Those from before have it in their records.
ALTER TABLE replays ADD COLUMN verdict text;

-- +goose Down
ALTER TABLE replays DROP COLUMN verdict;
