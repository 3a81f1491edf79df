-- +goose NO TRANSACTION
-- +goose Up
-- spent is how many attempts a delivery had when it was sent again: they count no more for its retries. What failed has an index of its own, in which
-- what is usual costs nothing.
--
-- Captures go on while it is made, which waits for every transaction that was begun before. What an earlier try left
-- unfinished goes first.
ALTER TABLE forwards ADD COLUMN IF NOT EXISTS spent bigint NOT NULL DEFAULT 0;
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS forwards_failed;
CREATE INDEX CONCURRENTLY forwards_failed ON forwards (target, num) WHERE state = 'failed';
SET lock_timeout = '200ms';

-- +goose Down
DROP INDEX forwards_failed;
ALTER TABLE forwards DROP COLUMN spent;
