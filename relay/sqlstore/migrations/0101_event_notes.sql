-- What of an event was accepted but not used: a list of texts in JSON.
ALTER TABLE event_mark ADD COLUMN notes TEXT NOT NULL DEFAULT 'null';
