-- The start of an attempt changes no indexed column: on PostgreSQL the row then
-- stays on its page, if that has room, and no index gets an entry. So the lists of
-- pending messages and of those being sent read what has a due time, and the
-- indexes of the other states have a column of their own.
ALTER TABLE message_state ADD COLUMN settled BIGINT NOT NULL DEFAULT 0; -- states without pending and sending
UPDATE message_state SET settled = states & 508;
DROP INDEX message_pending;
DROP INDEX message_sending;
DROP INDEX message_accepted;
DROP INDEX message_buffered;
DROP INDEX message_delivered;
DROP INDEX message_undelivered;
DROP INDEX message_rejected;
DROP INDEX message_unknown;
DROP INDEX message_removed;
CREATE INDEX message_waiting ON message_state (account, id) WHERE due > 0;
CREATE INDEX message_accepted ON message_state (account, id) WHERE (settled & 4) = 4;
CREATE INDEX message_buffered ON message_state (account, id) WHERE (settled & 8) = 8;
CREATE INDEX message_delivered ON message_state (account, id) WHERE (settled & 16) = 16;
CREATE INDEX message_undelivered ON message_state (account, id) WHERE (settled & 32) = 32;
CREATE INDEX message_rejected ON message_state (account, id) WHERE (settled & 64) = 64;
CREATE INDEX message_unknown ON message_state (account, id) WHERE (settled & 128) = 128;
CREATE INDEX message_removed ON message_state (account, id) WHERE (settled & 256) = 256;
ALTER TABLE message_state SET (fillfactor = 50); -- only postgresql
