-- +goose Up
-- The results of a mail's authentication; NULL until it has ended, and for webhooks.
ALTER TABLE events ADD COLUMN spf TEXT;
ALTER TABLE events ADD COLUMN dkim TEXT;
ALTER TABLE events ADD COLUMN dmarc TEXT;

-- Of mail, as JSON: what was said of it by SMTP.
ALTER TABLE payloads ADD COLUMN envelope TEXT;

-- What the results rest on, as JSON. It comes later than the mail, whose large row is not to be written again for it.
CREATE TABLE mail_verdicts (
    event   INTEGER PRIMARY KEY,
    verdict TEXT   NOT NULL
) STRICT;

-- +goose Down
DROP TABLE mail_verdicts;
ALTER TABLE payloads DROP COLUMN envelope;
ALTER TABLE events DROP COLUMN dmarc;
ALTER TABLE events DROP COLUMN dkim;
ALTER TABLE events DROP COLUMN spf;
