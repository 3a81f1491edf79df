-- +goose Up
-- The results of a mail's authentication; NULL until it has ended, and for webhooks.
ALTER TABLE events ADD COLUMN spf TEXT;
ALTER TABLE events ADD COLUMN dkim TEXT;
ALTER TABLE events ADD COLUMN dmarc TEXT;
-- Of mail, as JSON: what was said of it by SMTP, and what its authentication rests on.
ALTER TABLE payloads ADD COLUMN envelope TEXT;
ALTER TABLE payloads ADD COLUMN verdict TEXT;

-- +goose Down
ALTER TABLE payloads DROP COLUMN verdict;
ALTER TABLE payloads DROP COLUMN envelope;
ALTER TABLE events DROP COLUMN dmarc;
ALTER TABLE events DROP COLUMN dkim;
ALTER TABLE events DROP COLUMN spf;
