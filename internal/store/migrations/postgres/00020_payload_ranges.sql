-- +goose Up
-- Payloads become a table of ranges of sequence numbers, which DB.TendPayloads makes and drops. What is there already is the
-- default range: nothing is moved or read here, and TendPayloads gives it its bounds later, while captures go on.
ALTER TABLE payloads RENAME TO payloads_rest;
ALTER INDEX payloads_pkey RENAME TO payloads_rest_pkey;
CREATE TABLE payloads (LIKE payloads_rest INCLUDING ALL) PARTITION BY RANGE (seq);
ALTER TABLE payloads ATTACH PARTITION payloads_rest DEFAULT;

-- +goose Down
CREATE TABLE payloads_all (LIKE payloads INCLUDING ALL);
INSERT INTO payloads_all SELECT * FROM payloads;
DROP TABLE payloads;
ALTER TABLE payloads_all RENAME TO payloads;
ALTER INDEX payloads_all_pkey RENAME TO payloads_pkey;
