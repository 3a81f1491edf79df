-- +goose Up
-- spent is how many attempts a delivery had when it was sent again: they count no more for its retries. What failed has an index of its own, in which
-- what is usual costs nothing.
ALTER TABLE forwards ADD COLUMN spent INTEGER NOT NULL DEFAULT 0;
CREATE INDEX forwards_failed ON forwards (target, num) WHERE state = 'failed';

-- +goose Down
DROP INDEX forwards_failed;
ALTER TABLE forwards DROP COLUMN spent;
