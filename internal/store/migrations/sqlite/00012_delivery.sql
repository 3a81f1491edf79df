-- +goose Up
-- What an attempt says beside the one before it to the same target. Those from before have it in their records.
ALTER TABLE replays ADD COLUMN verdict TEXT;

-- +goose Down
ALTER TABLE replays DROP COLUMN verdict;
