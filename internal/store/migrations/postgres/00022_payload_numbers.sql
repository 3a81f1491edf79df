-- +goose Up
-- Captures are copied into both tables in one transaction, and the numbers of the payloads are those that the events were given just before:
-- each group sets this sequence to the first of them, under the lock that lets one group at a time take numbers.
CREATE SEQUENCE payloads_seq_seq;

ALTER TABLE payloads ALTER seq SET DEFAULT nextval('payloads_seq_seq');

-- +goose Down
ALTER TABLE payloads ALTER seq DROP DEFAULT;
DROP SEQUENCE payloads_seq_seq CASCADE;
