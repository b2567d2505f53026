-- Deliveries. doc is what never changes, without the fields that have a column.
CREATE TABLE delivery (
  id TEXT NOT NULL,
  account BIGINT NOT NULL,
  created BIGINT NOT NULL,               -- in nanoseconds
  kind TEXT NOT NULL,
  relay TEXT NOT NULL,
  message_id TEXT NOT NULL,
  originator TEXT NOT NULL,
  destination TEXT NOT NULL,
  doc TEXT NOT NULL,
  queue TEXT NOT NULL DEFAULT '',        -- the ordered endpoint, if it is one
  place BIGINT NOT NULL DEFAULT 0,       -- in the queue, from 1; 0 once it has ended
  state TEXT NOT NULL,
  reason TEXT NOT NULL DEFAULT '',
  due BIGINT NOT NULL,                   -- next attempt or end of the lease
  leased BIGINT NOT NULL,
  waits TEXT NOT NULL DEFAULT '',        -- outbox.Wait
  endpoint TEXT NOT NULL DEFAULT '',     -- whose breaker it waits for
  held_until BIGINT NOT NULL DEFAULT 0,
  tries BIGINT NOT NULL DEFAULT 0,
  attempts TEXT NOT NULL DEFAULT '',     -- JSON of each attempt, followed by a comma
  expires BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (id, account)
);
-- No table is written more often, and every index costs: what is rare has partial
-- ones, and neither expires nor the state of an account's deliveries has one.
CREATE INDEX delivery_by_state ON delivery (state, created);
CREATE INDEX delivery_by_account ON delivery (account, created);
CREATE INDEX delivery_by_message ON delivery (message_id) WHERE message_id <> '';
CREATE INDEX delivery_due ON delivery (due) WHERE due > 0;
CREATE INDEX delivery_dead_by_account ON delivery (account, created) WHERE state = 'dead';
CREATE INDEX delivery_simulated_by_account ON delivery (account, created) WHERE state = 'simulated';
CREATE INDEX delivery_dead_expires ON delivery (state, expires) WHERE state = 'dead' AND expires > 0;
CREATE INDEX delivery_parked ON delivery (account, endpoint, held_until, id) WHERE waits = 'breaker';
CREATE INDEX delivery_queued ON delivery (account, queue, place) WHERE place > 0;
ALTER TABLE delivery SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05); -- only postgresql

-- Ordered queues: the row is locked to give out places and turns.
CREATE TABLE delivery_queue (
  account BIGINT NOT NULL,
  queue TEXT NOT NULL,
  PRIMARY KEY (account, queue)
) {clustered};

-- The lower-cased texts of dead deliveries. A search reads them, newest first.
CREATE TABLE delivery_dead (
  id TEXT NOT NULL,
  account BIGINT NOT NULL,
  created BIGINT NOT NULL,               -- in nanoseconds
  text TEXT NOT NULL,
  PRIMARY KEY (id, account)
);
CREATE INDEX delivery_dead_created ON delivery_dead (created);

-- How many deliveries have ended, by state: the sum over the parts, among which
-- transactions are spread so that they do not wait for one row.
CREATE TABLE delivery_count (
  part BIGINT NOT NULL,
  state TEXT NOT NULL,
  ended BIGINT NOT NULL,
  PRIMARY KEY (part, state)
) {clustered};
