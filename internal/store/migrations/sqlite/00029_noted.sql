-- +goose Up
-- Events that people wrote a note on, which are few among very many: a search for notes reads them alone. Making it reads
-- the events once, a fraction of a second for a million.
CREATE INDEX events_noted ON events (endpoint, seq) WHERE note IS NOT NULL;

-- +goose Down
DROP INDEX events_noted;
