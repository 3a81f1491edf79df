-- +goose Up
-- What the ledger tells apart from the usual: answers other than 200, what is ignored, and deliveries that are done and not well. What is usual is in
-- none of these indexes, so that it costs nothing to store.
CREATE INDEX events_answer ON events (endpoint, seq, type, status) WHERE status IS NULL OR status <> 200;
CREATE INDEX events_ignored ON events (endpoint, seq) WHERE ignored IS NOT NULL;
CREATE INDEX forwards_undelivered ON forwards (event, target, state) WHERE due_at IS NULL AND state <> 'delivered';

-- +goose Down
DROP INDEX forwards_undelivered;
DROP INDEX events_ignored;
DROP INDEX events_answer;
