-- +goose Up
-- For PostgreSQL alone.
SELECT 1;

-- +goose Down
SELECT 1;
