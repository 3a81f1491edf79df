-- +goose NO TRANSACTION
-- +goose Up
-- What the ledger tells apart from the usual: answers other than 200, what is ignored, and deliveries that are done and not well. What is usual is in
-- none of these indexes, so that it costs nothing to store.
--
-- Captures go on while they are made, which waits for every transaction that was begun before. What an earlier try left
-- unfinished goes first.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS events_answer;
CREATE INDEX CONCURRENTLY events_answer ON events (endpoint, seq, type, status) WHERE status IS NULL OR status <> 200;
DROP INDEX CONCURRENTLY IF EXISTS events_ignored;
CREATE INDEX CONCURRENTLY events_ignored ON events (endpoint, seq) WHERE ignored IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS forwards_undelivered;
CREATE INDEX CONCURRENTLY forwards_undelivered ON forwards (event, target, state) WHERE due_at IS NULL AND state <> 'delivered';
SET lock_timeout = '200ms';

-- +goose Down
DROP INDEX forwards_undelivered;
DROP INDEX events_ignored;
DROP INDEX events_answer;
