-- Messages: what never changes, searched by number.
CREATE TABLE message (
  account BIGINT NOT NULL,
  id BIGINT NOT NULL,
  originator TEXT NOT NULL,
  destination TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, id)
);
CREATE INDEX message_originator ON message (account, originator, id);
CREATE INDEX message_destination ON message (account, destination, id);

-- What changes of a message. parts is JSON, a record for each part; '' while all
-- are as they were saved. Times are in ms.
CREATE TABLE message_state (
  account BIGINT NOT NULL,
  id BIGINT NOT NULL,
  part_count BIGINT NOT NULL,
  scheduled BIGINT NOT NULL, -- when it was to be sent first
  report BIGINT NOT NULL,    -- 1: its account wants reports
  parts TEXT NOT NULL,
  pending BIGINT NOT NULL,   -- parts that are pending
  states BIGINT NOT NULL,    -- a bit for each state that a part has, see stateBit
  due BIGINT NOT NULL,       -- next attempt or end of the lease; 0: no part waits
  untold BIGINT NOT NULL,    -- since when there is something to report; 0: nothing
  expires BIGINT NOT NULL,   -- when it is deleted; 0: a part waits
  version BIGINT NOT NULL,   -- changes of the states of parts
  PRIMARY KEY (account, id)
);
CREATE INDEX message_due ON message_state (account, due, id) WHERE due > 0;
CREATE INDEX message_untold ON message_state (untold, account, id) WHERE untold > 0;
CREATE INDEX message_expires ON message_state (expires, account, id) WHERE expires > 0;
-- The lists of messages that have a part in some state, newest first.
CREATE INDEX message_pending ON message_state (account, id, pending) WHERE pending > 0;
CREATE INDEX message_sending ON message_state (account, id) WHERE (states & 2) = 2;
CREATE INDEX message_accepted ON message_state (account, id) WHERE (states & 4) = 4;
CREATE INDEX message_buffered ON message_state (account, id) WHERE (states & 8) = 8;
CREATE INDEX message_delivered ON message_state (account, id) WHERE (states & 16) = 16;
CREATE INDEX message_undelivered ON message_state (account, id) WHERE (states & 32) = 32;
CREATE INDEX message_rejected ON message_state (account, id) WHERE (states & 64) = 64;
CREATE INDEX message_unknown ON message_state (account, id) WHERE (states & 128) = 128;
CREATE INDEX message_removed ON message_state (account, id) WHERE (states & 256) = 256;
-- Each attempt leaves dead rows and entries behind. -- only postgresql
ALTER TABLE message_state SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1); -- only postgresql

-- The last id that was reserved.
CREATE TABLE message_id (
  last BIGINT NOT NULL
);
INSERT INTO message_id (last) VALUES (0);

-- Orders that clients named with a key of their own.
CREATE TABLE message_order (
  account BIGINT NOT NULL,
  client_key TEXT NOT NULL, -- hashed
  content TEXT NOT NULL,    -- tells one order from another
  first_message BIGINT NOT NULL,
  answer BYTEA NOT NULL,
  expires BIGINT NOT NULL,
  PRIMARY KEY (account, client_key)
);
CREATE INDEX message_order_expires ON message_order (expires);

-- Parts by the ids that carriers gave them. An id that is not bound yet has
-- message 0; early is the JSON of the receipts that came for it before it was,
-- each with a comma behind it.
CREATE TABLE message_ref (
  carrier TEXT NOT NULL,
  ref TEXT NOT NULL,
  account BIGINT NOT NULL,
  message BIGINT NOT NULL,
  part BIGINT NOT NULL,
  number TEXT NOT NULL, -- the message's destination
  early TEXT NOT NULL,
  expires BIGINT NOT NULL,
  PRIMARY KEY (carrier, ref)
);
CREATE INDEX message_ref_expires ON message_ref (expires);
