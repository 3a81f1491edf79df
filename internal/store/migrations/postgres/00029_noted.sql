-- +goose NO TRANSACTION
-- +goose Up
-- Events that people wrote a note on, which are few among very many: a search for notes reads them alone.
--
-- Captures go on while it is made, which waits for every transaction that was begun before. What an earlier try left
-- unfinished goes first.
SET lock_timeout = 0;
DROP INDEX CONCURRENTLY IF EXISTS events_noted;
CREATE INDEX CONCURRENTLY events_noted ON events (endpoint, seq) WHERE note IS NOT NULL;
SET lock_timeout = '200ms';

-- +goose Down
DROP INDEX events_noted;
