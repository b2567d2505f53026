-- What happens to the messages for a number or prefix. Each belongs to one relay
-- of its kind in the whole gateway.
CREATE TABLE relay (
  account BIGINT NOT NULL,
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  number TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, kind, id)
);
CREATE UNIQUE INDEX relay_number ON relay (kind, number);

-- The message that a carrier's id became.
CREATE TABLE carrier_id (
  id TEXT NOT NULL PRIMARY KEY,
  holder TEXT NOT NULL,
  expires BIGINT NOT NULL
) {clustered};
CREATE INDEX carrier_id_expires ON carrier_id (expires);

-- Messages in the inboxes of relays. One with expires > 0 was acknowledged: its
-- doc is empty, and until then it does not come back.
CREATE TABLE inbox (
  account BIGINT NOT NULL,
  relay TEXT NOT NULL,
  id TEXT NOT NULL,
  received BIGINT NOT NULL, -- in nanoseconds
  doc TEXT NOT NULL,
  expires BIGINT NOT NULL,
  PRIMARY KEY (account, relay, id)
);
CREATE INDEX inbox_received ON inbox (account, relay, received, id) WHERE expires = 0;
CREATE INDEX inbox_expires ON inbox (expires) WHERE expires > 0;

-- What the parts of a message have in common, with the last message that was made
-- of such parts. Its row is locked before any other of the group.
CREATE TABLE part_group (
  grp TEXT NOT NULL PRIMARY KEY,
  due BIGINT NOT NULL,           -- when the parts that wait go on without the others; 0: none waits
  message TEXT NOT NULL,         -- the last message
  repeats_until BIGINT NOT NULL, -- the same parts repeat it if the first came until then
  expires BIGINT NOT NULL        -- until when it is remembered
) {clustered} {busy};
CREATE INDEX part_group_due ON part_group (due) WHERE due > 0;
CREATE INDEX part_group_expires ON part_group (expires) WHERE due = 0;

CREATE TABLE part (
  grp TEXT NOT NULL,
  id TEXT NOT NULL,      -- of the message that is the part
  number BIGINT NOT NULL,
  digest TEXT NOT NULL,
  message TEXT NOT NULL, -- that it is a part of; empty: it waits
  doc TEXT NOT NULL,     -- empty: it repeats a part
  PRIMARY KEY (grp, id)
) {busy};

-- Messages whose parts have come and that have not gone on.
CREATE TABLE part_ready (
  grp TEXT NOT NULL,
  id TEXT NOT NULL,
  due BIGINT NOT NULL, -- the end of the lease
  PRIMARY KEY (grp, id)
) {clustered};
CREATE INDEX part_ready_due ON part_ready (due);

-- Messages of parts that nobody takes, for the event at which that is noted.
CREATE TABLE part_parked (
  grp TEXT NOT NULL,
  event TEXT NOT NULL,
  id TEXT NOT NULL,
  doc TEXT NOT NULL, -- the parts
  expires BIGINT NOT NULL,
  PRIMARY KEY (grp, event)
);
CREATE INDEX part_parked_expires ON part_parked (expires);

-- What became of the events of a node that were set aside.
CREATE TABLE event_mark (
  node TEXT NOT NULL,
  kind TEXT NOT NULL,
  seq BIGINT NOT NULL,
  state TEXT NOT NULL,
  id TEXT NOT NULL,
  reason TEXT NOT NULL,
  outcome TEXT NOT NULL,
  account BIGINT NOT NULL,
  source TEXT NOT NULL,
  device TEXT NOT NULL,
  PRIMARY KEY (node, kind, seq)
);
CREATE INDEX event_mark_state ON event_mark (node, kind, state, seq);
