-- The schema of the records, by domain. A "Domain" line starts the tables of a domain:
-- DB.Sizes reports sizes by these names.
--
-- Times are in milliseconds since 1970 unless a comment says otherwise; a missing time is 0.
-- A missing id or text is ''. A column doc is the JSON of a record, in some tables without
-- the fields that have a column, in some tables sealed.

-- Domain: core

-- The number of changes of named records. Gateways compare it to keep their caches valid.
CREATE TABLE version (
  name TEXT NOT NULL PRIMARY KEY,
  n BIGINT NOT NULL
) {clustered};

-- Domain: gateways

-- The gateways that work on this database. facts is the JSON of gateway.Facts.
CREATE TABLE gateway (
  node TEXT NOT NULL PRIMARY KEY,
  url TEXT NOT NULL,
  version TEXT NOT NULL,
  started BIGINT NOT NULL,
  seen BIGINT NOT NULL,
  facts TEXT NOT NULL
);

-- The next due time of periodic work. The gateway that moves the time does the work.
CREATE TABLE turn (
  name TEXT NOT NULL PRIMARY KEY,
  due BIGINT NOT NULL
);

-- The gateway that opens the binds of a carrier whose SMSC allows one connection, and the end
-- of this right unless the gateway renews it.
CREATE TABLE carrier_holder (
  carrier TEXT NOT NULL PRIMARY KEY,
  node TEXT NOT NULL,
  held_until BIGINT NOT NULL
);

-- Generated values that the gateways share: the id of this database, secrets.
CREATE TABLE setting (
  name TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
);

-- The processed position of each journal. A journal with a higher checkpoint of its own
-- belongs to a later state of the database.
CREATE TABLE checkpoint (
  node TEXT NOT NULL,
  kind TEXT NOT NULL,
  seq BIGINT NOT NULL,
  PRIMARY KEY (node, kind)
);

-- Domain: users

-- Users of the admin API. A session is valid for the version of its user at sign-in: a
-- change of the user ends the session.
CREATE TABLE admin_user (
  id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  subject TEXT NOT NULL DEFAULT '',      -- issuer and subject, for users of an identity provider
  version BIGINT NOT NULL,
  signed_in BIGINT NOT NULL DEFAULT 0,
  doc TEXT NOT NULL
);
CREATE UNIQUE INDEX admin_user_subject ON admin_user (subject) WHERE subject <> '';

CREATE TABLE admin_session (
  hash TEXT NOT NULL PRIMARY KEY,
  user_id TEXT NOT NULL,
  version BIGINT NOT NULL,
  created BIGINT NOT NULL,
  expires BIGINT NOT NULL
);
CREATE INDEX admin_session_user ON admin_session (user_id);
CREATE INDEX admin_session_expires ON admin_session (expires);

-- Domain: audit

-- Changes made over the admin API. Ids sort by time. A row is saved before the change and
-- completed after the change: the outcome 'started' means that the end was not recorded.
CREATE TABLE audit_entry (
  id TEXT NOT NULL PRIMARY KEY,
  at BIGINT NOT NULL,
  actor TEXT NOT NULL,
  operation TEXT NOT NULL,
  account BIGINT NOT NULL DEFAULT 0,
  outcome TEXT NOT NULL,
  target TEXT NOT NULL DEFAULT '',       -- id or name of the changed object
  doc TEXT NOT NULL
);
CREATE INDEX audit_entry_actor ON audit_entry (actor, id);
CREATE INDEX audit_entry_operation ON audit_entry (operation, id);
CREATE INDEX audit_entry_account ON audit_entry (account, id);

-- Domain: accounts

CREATE TABLE account (
  id BIGINT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  doc TEXT NOT NULL
);

-- One row: the last id that was assigned. The row is locked while an account is saved.
CREATE TABLE account_id (
  last BIGINT NOT NULL
);
INSERT INTO account_id (last) VALUES (0);

-- Tokens. A source belongs to the last token saved with it; earlier tokens have ''. secret
-- is sealed. The other columns are not: a gateway without the master key accepts posts and
-- keeps them in its journal.
CREATE TABLE token (
  hash TEXT NOT NULL PRIMARY KEY,
  source TEXT NOT NULL,
  doc TEXT NOT NULL,
  secret TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX token_source ON token (source) WHERE source <> '';

-- Logins. id is a username; account is 0.
CREATE TABLE login (
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, id)
);

CREATE TABLE trunk (
  account BIGINT NOT NULL PRIMARY KEY,
  doc TEXT NOT NULL
);

-- The inventory without its SIMs: one row, id 1.
CREATE TABLE inventory (
  id BIGINT NOT NULL PRIMARY KEY,
  doc BYTEA NOT NULL
);

-- The SIMs that the inventory declares. A SIM that moves to another account while a
-- document still needs it in the first account has a row for each.
CREATE TABLE declared_sim (
  iccid TEXT NOT NULL,
  imsi TEXT NOT NULL,
  msisdn TEXT NOT NULL,
  document TEXT NOT NULL,
  account TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (iccid, account)
);
CREATE INDEX declared_sim_imsi ON declared_sim (imsi) WHERE imsi <> '';
CREATE INDEX declared_sim_msisdn ON declared_sim (msisdn) WHERE msisdn <> '';
CREATE INDEX declared_sim_document ON declared_sim (document, account);

-- Credit: one row per account, which changes often. granted is the balance without charges and
-- refunds: what the inventory and admins have given.
CREATE TABLE credit (
  account BIGINT NOT NULL PRIMARY KEY,
  balance BIGINT NOT NULL,
  last BIGINT NOT NULL,
  granted BIGINT NOT NULL DEFAULT 0
) {busy};

-- Changes of credit. balance is the credit after the change.
CREATE TABLE credit_entry (
  account BIGINT NOT NULL,
  sequence BIGINT NOT NULL,
  id TEXT NOT NULL,
  at BIGINT NOT NULL,
  credits BIGINT NOT NULL,
  balance BIGINT NOT NULL,
  reason TEXT NOT NULL,
  reference TEXT NOT NULL,
  PRIMARY KEY (account, sequence),
  UNIQUE (account, id)
) {clustered};

-- Results of number lookups.
CREATE TABLE lookup (
  number TEXT NOT NULL PRIMARY KEY,
  doc TEXT NOT NULL,
  expires BIGINT NOT NULL
);
CREATE INDEX lookup_expires ON lookup (expires) WHERE expires > 0;

-- Networks of the lookup simulator. id is a prefix; account is 0.
CREATE TABLE network (
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, id)
);

-- Domain: inbound

-- Relays of messages for a number or prefix. Each number belongs to one relay of its kind
-- among all accounts.
CREATE TABLE relay (
  account BIGINT NOT NULL,
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  number TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, kind, id)
);
CREATE UNIQUE INDEX relay_number ON relay (kind, number);

-- The message of each id that a carrier assigned.
CREATE TABLE carrier_id (
  id TEXT NOT NULL PRIMARY KEY,
  holder TEXT NOT NULL,
  expires BIGINT NOT NULL
) {clustered};
CREATE INDEX carrier_id_expires ON carrier_id (expires);

-- Messages in the inboxes of relays. A row with expires > 0 was acknowledged: its doc is
-- empty, and until then the row prevents that the message is stored again.
CREATE TABLE inbox (
  account BIGINT NOT NULL,
  relay TEXT NOT NULL,
  id TEXT NOT NULL,
  received BIGINT NOT NULL, -- ns
  doc TEXT NOT NULL,
  expires BIGINT NOT NULL,
  PRIMARY KEY (account, relay, id)
);
CREATE INDEX inbox_received ON inbox (account, relay, received, id) WHERE expires = 0;
CREATE INDEX inbox_expires ON inbox (expires) WHERE expires > 0;

-- Groups of message parts, with the last message that was joined from them. The row of the
-- group is locked before any other row of the group.
CREATE TABLE part_group (
  grp TEXT NOT NULL PRIMARY KEY,
  due BIGINT NOT NULL,           -- when waiting parts are relayed without the missing ones; 0: no part waits
  message TEXT NOT NULL,         -- the last message
  repeats_until BIGINT NOT NULL, -- the same parts repeat the message if the first arrived until then
  expires BIGINT NOT NULL        -- when the group is deleted
) {clustered} {busy};
CREATE INDEX part_group_due ON part_group (due) WHERE due > 0;
CREATE INDEX part_group_expires ON part_group (expires) WHERE due = 0;

CREATE TABLE part (
  grp TEXT NOT NULL,
  id TEXT NOT NULL,      -- id of the part, itself a message
  number BIGINT NOT NULL,
  digest TEXT NOT NULL,
  message TEXT NOT NULL, -- the joined message; '': the part waits
  doc TEXT NOT NULL,     -- '': the part repeats another one
  PRIMARY KEY (grp, id)
) {busy};

-- Complete messages that are not relayed yet.
CREATE TABLE part_ready (
  grp TEXT NOT NULL,
  id TEXT NOT NULL,
  due BIGINT NOT NULL, -- end of the lease
  PRIMARY KEY (grp, id)
) {clustered};
CREATE INDEX part_ready_due ON part_ready (due);

-- Joined messages that no relay matches, by the event that records this.
CREATE TABLE part_parked (
  grp TEXT NOT NULL,
  event TEXT NOT NULL,
  id TEXT NOT NULL,
  doc TEXT NOT NULL, -- the parts
  expires BIGINT NOT NULL,
  PRIMARY KEY (grp, event)
);
CREATE INDEX part_parked_expires ON part_parked (expires);

-- Statuses of the events of a node, except events that are done without an outcome or notes.
-- Deferred events (state pending) are processed again account by account.
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
  notes TEXT NOT NULL DEFAULT 'null', -- JSON array: notes about ignored parts of the event
  PRIMARY KEY (node, kind, seq)
);
CREATE INDEX event_mark_state ON event_mark (node, kind, state, seq);
CREATE INDEX event_mark_account ON event_mark (node, kind, state, account, seq);

-- Domain: deliveries

-- Deliveries. doc never changes; the account is its only field that also has a column.
CREATE TABLE delivery (
  id TEXT NOT NULL,
  account BIGINT NOT NULL,
  created BIGINT NOT NULL,               -- ns
  kind TEXT NOT NULL,
  relay TEXT NOT NULL,
  message_id TEXT NOT NULL,
  originator TEXT NOT NULL,
  destination TEXT NOT NULL,
  doc TEXT NOT NULL,
  queue TEXT NOT NULL DEFAULT '',        -- the endpoint, if it is ordered
  place BIGINT NOT NULL DEFAULT 0,       -- place in the queue, from 1; 0: the delivery has ended
  state TEXT NOT NULL,
  reason TEXT NOT NULL DEFAULT '',
  due BIGINT NOT NULL,                   -- next attempt or end of the lease
  leased BIGINT NOT NULL,
  waits TEXT NOT NULL DEFAULT '',        -- outbox.Wait
  endpoint TEXT NOT NULL DEFAULT '',     -- the endpoint whose breaker the delivery waits for
  held_until BIGINT NOT NULL DEFAULT 0,
  tries BIGINT NOT NULL DEFAULT 0,
  expires BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (id, account)
);
-- This table is written most often, and every index costs: rare states have partial indexes,
-- and neither expires nor the state of an account's deliveries has an index.
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

-- The attempts of deliveries. They are deleted with their delivery.
CREATE TABLE delivery_attempt (
  delivery TEXT NOT NULL,
  account BIGINT NOT NULL,
  at BIGINT NOT NULL,                    -- ns
  duration BIGINT NOT NULL,              -- ns
  status BIGINT NOT NULL,                -- of the answer; 0: none
  error TEXT NOT NULL,                   -- for operators
  reason TEXT NOT NULL,                  -- for users of the account
  response TEXT NOT NULL,
  PRIMARY KEY (delivery, account, at)
) {clustered};

-- Ordered queues. The row is locked to assign places and turns.
CREATE TABLE delivery_queue (
  account BIGINT NOT NULL,
  queue TEXT NOT NULL,
  PRIMARY KEY (account, queue)
) {clustered};

-- The lower-cased texts of dead deliveries. A search reads them, newest first.
CREATE TABLE delivery_dead (
  id TEXT NOT NULL,
  account BIGINT NOT NULL,
  created BIGINT NOT NULL,               -- ns
  text TEXT NOT NULL,
  PRIMARY KEY (id, account)
);
CREATE INDEX delivery_dead_created ON delivery_dead (created);

-- The number of ended deliveries by state is the sum over the parts. Transactions are spread
-- among the parts so that they do not wait for one row.
CREATE TABLE delivery_count (
  part BIGINT NOT NULL,
  state TEXT NOT NULL,
  ended BIGINT NOT NULL,
  PRIMARY KEY (part, state)
) {clustered};

-- Domain: messages

-- The immutable part of messages. Messages are searched by number.
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

-- The variable part of messages.
--
-- The start of an attempt changes no indexed column: on PostgreSQL the row then stays on
-- its page if the page has room, and no index gets an entry. Therefore the lists of pending and
-- sending messages read the messages with a due time, and the indexes of the other states use
-- the column settled.
CREATE TABLE message_state (
  account BIGINT NOT NULL,
  id BIGINT NOT NULL,
  part_count BIGINT NOT NULL,
  scheduled BIGINT NOT NULL, -- requested time of sending
  report BIGINT NOT NULL,    -- 1: the message has a report URL
  parts TEXT NOT NULL,       -- JSON, a record for each part; '': no part has changed
  pending BIGINT NOT NULL,   -- number of pending parts
  states BIGINT NOT NULL,    -- a bit for each state that a part has, see stateBit
  due BIGINT NOT NULL,       -- next attempt or end of the lease; 0: no part waits
  untold BIGINT NOT NULL,    -- time of the first unreported change; 0: none
  expires BIGINT NOT NULL,   -- when the message is deleted; 0: a part waits
  version BIGINT NOT NULL,   -- number of changes of the states of parts
  settled BIGINT NOT NULL DEFAULT 0, -- states without pending and sending
  PRIMARY KEY (account, id)
);
CREATE INDEX message_due ON message_state (account, due, id) WHERE due > 0;
CREATE INDEX message_untold ON message_state (untold, account, id) WHERE untold > 0;
CREATE INDEX message_expires ON message_state (expires, account, id) WHERE expires > 0;
-- The lists of messages with a part in a state, newest first.
CREATE INDEX message_waiting ON message_state (account, id) WHERE due > 0;
CREATE INDEX message_accepted ON message_state (account, id) WHERE (settled & 4) = 4;
CREATE INDEX message_buffered ON message_state (account, id) WHERE (settled & 8) = 8;
CREATE INDEX message_delivered ON message_state (account, id) WHERE (settled & 16) = 16;
CREATE INDEX message_undelivered ON message_state (account, id) WHERE (settled & 32) = 32;
CREATE INDEX message_rejected ON message_state (account, id) WHERE (settled & 64) = 64;
CREATE INDEX message_unknown ON message_state (account, id) WHERE (settled & 128) = 128;
CREATE INDEX message_removed ON message_state (account, id) WHERE (settled & 256) = 256;
-- Each attempt leaves dead rows and entries behind. -- only postgresql
ALTER TABLE message_state SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1); -- only postgresql
ALTER TABLE message_state SET (fillfactor = 50); -- only postgresql

-- One row: the last id that was reserved.
CREATE TABLE message_id (
  last BIGINT NOT NULL
);
INSERT INTO message_id (last) VALUES (0);

-- Orders with an idempotency key.
CREATE TABLE message_order (
  account BIGINT NOT NULL,
  client_key TEXT NOT NULL, -- hashed
  content TEXT NOT NULL,    -- hash that distinguishes orders with the same key
  first_message BIGINT NOT NULL,
  answer BYTEA NOT NULL,
  expires BIGINT NOT NULL,
  PRIMARY KEY (account, client_key)
);
CREATE INDEX message_order_expires ON message_order (expires);

-- Parts by the ids that carriers assigned. An id that is not bound yet has message 0.
--
-- early is the JSON of receipts, each followed by a comma: receipts that arrived before the id
-- was bound, and later receipts that are about none of its parts.
--
-- An SMSC may assign one id to two messages. earlier has the previous parts of the id, newest
-- first: account, message, part and number separated by blanks, and a comma after each part.
CREATE TABLE message_ref (
  carrier TEXT NOT NULL,
  ref TEXT NOT NULL,
  account BIGINT NOT NULL,
  message BIGINT NOT NULL,
  part BIGINT NOT NULL,
  number TEXT NOT NULL, -- the message's destination
  early TEXT NOT NULL,
  expires BIGINT NOT NULL,
  earlier TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (carrier, ref)
);
CREATE INDEX message_ref_expires ON message_ref (expires);

-- Domain: jobs

-- Jobs. place is the order of creation; doc never changes.
CREATE TABLE job (
  place {serial},
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  list TEXT NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  doc TEXT NOT NULL,
  state TEXT NOT NULL,
  due BIGINT NOT NULL,     -- start of the next try, or end of the lease; 0: the job has ended
  tries BIGINT NOT NULL,
  updated BIGINT NOT NULL,
  expires BIGINT NOT NULL, -- 0: never
  error TEXT NOT NULL,
  result TEXT NOT NULL,
  settled TEXT NOT NULL,   -- JSON of the job's effects, saved in the transaction that makes them
  UNIQUE (account, id)
) {busy};
CREATE INDEX job_due ON job (account, due, place, id) WHERE due > 0;
CREATE INDEX job_expires ON job (expires) WHERE expires > 0;
-- The lists of an account, by every combination of filters.
CREATE INDEX job_list ON job (account, list, place, expires) WHERE list <> '';
CREATE INDEX job_state ON job (account, list, state, place, expires) WHERE list <> '';
CREATE INDEX job_kind ON job (account, list, kind, place, expires) WHERE list <> '';
CREATE INDEX job_kind_state ON job (account, list, kind, state, place, expires) WHERE list <> '';
CREATE INDEX job_name ON job (account, list, name, place, kind, state, expires) WHERE list <> '' AND name <> '';

-- Domain: sims

CREATE TABLE sim (
  account BIGINT NOT NULL,
  iccid TEXT NOT NULL,
  imsi TEXT NOT NULL,       -- '': unknown
  msisdn TEXT NOT NULL,     -- '': unknown
  pool TEXT NOT NULL,
  subscriber TEXT NOT NULL,
  state TEXT NOT NULL,
  requested TEXT NOT NULL,
  job TEXT NOT NULL,        -- id of the job in progress
  service_4g BIGINT NOT NULL,
  service_5g BIGINT NOT NULL,
  pin TEXT NOT NULL,
  pin2 TEXT NOT NULL,
  puk TEXT NOT NULL,
  puk2 TEXT NOT NULL,
  monthly BIGINT NOT NULL,  -- bytes
  warning BIGINT NOT NULL,  -- bytes
  cap TEXT NOT NULL,
  recipients TEXT NOT NULL, -- JSON array; '': none
  detached TEXT NOT NULL,   -- id of the last call that removed the SIM from a pool
  PRIMARY KEY (account, iccid)
) {clustered} {busy};
-- The lists of the account, of a pool and of a subscriber, in the order of each column.
CREATE INDEX sim_by_iccid ON sim (account, iccid, imsi, msisdn); -- only postgresql
CREATE INDEX sim_by_imsi ON sim (account, imsi, iccid, msisdn);
CREATE INDEX sim_by_msisdn ON sim (account, msisdn, iccid, imsi);
CREATE INDEX sim_by_pool ON sim (account, pool, iccid, imsi, msisdn) WHERE pool <> '';
CREATE INDEX sim_by_pool_imsi ON sim (account, pool, imsi, iccid, msisdn) WHERE pool <> '';
CREATE INDEX sim_by_pool_msisdn ON sim (account, pool, msisdn, iccid, imsi) WHERE pool <> '';
CREATE INDEX sim_by_subscriber ON sim (account, subscriber, iccid, imsi, msisdn) WHERE subscriber <> '';
CREATE INDEX sim_by_subscriber_imsi ON sim (account, subscriber, imsi, iccid, msisdn) WHERE subscriber <> '';
CREATE INDEX sim_by_subscriber_msisdn ON sim (account, subscriber, msisdn, iccid, imsi) WHERE subscriber <> '';

CREATE TABLE sim_pool (
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, id)
);

-- Subscribers. forename and surname are in lower case; doc has all fields.
CREATE TABLE sim_subscriber (
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  forename TEXT NOT NULL,
  surname TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, id)
);
CREATE INDEX sim_subscriber_by_forename ON sim_subscriber (account, forename, id, surname);
CREATE INDEX sim_subscriber_by_surname ON sim_subscriber (account, surname, id, forename);

-- The number of records of an account: SIMs (sim) and subscribers (sim_subscriber), so that
-- pages of these lists need no count of the whole list.
CREATE TABLE sim_count (
  account BIGINT NOT NULL,
  list TEXT NOT NULL,
  n BIGINT NOT NULL,
  PRIMARY KEY (account, list)
) {clustered} {busy};

-- Domain: devices

CREATE TABLE decoder (
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, id)
);

CREATE TABLE location (
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, id)
);

-- Sensor types. account is 0.
CREATE TABLE sensor_type (
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, id)
);

CREATE TABLE device (
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  identifier TEXT NOT NULL,
  created BIGINT NOT NULL, -- ns
  doc TEXT NOT NULL,
  PRIMARY KEY (account, id),
  UNIQUE (account, identifier)
);
CREATE INDEX device_created ON device (account, created, id);

-- The account of each devEUI and MAC address.
CREATE TABLE device_claim (
  identifier TEXT NOT NULL PRIMARY KEY,
  account BIGINT NOT NULL
) {clustered};

CREATE TABLE sensor (
  account BIGINT NOT NULL,
  device TEXT NOT NULL,
  key TEXT NOT NULL,
  created BIGINT NOT NULL, -- ns
  doc TEXT NOT NULL,
  PRIMARY KEY (account, device, key)
);

-- Markers. place is the order of creation.
CREATE TABLE marker (
  place {serial},
  account BIGINT NOT NULL,
  device TEXT NOT NULL,
  id TEXT NOT NULL,
  created BIGINT NOT NULL,
  doc TEXT NOT NULL,
  UNIQUE (account, device, id)
);

CREATE TABLE raw_frame (
  account BIGINT NOT NULL,
  device TEXT NOT NULL,
  id TEXT NOT NULL,
  received BIGINT NOT NULL, -- ns
  doc TEXT NOT NULL,
  PRIMARY KEY (account, device, id)
);
CREATE INDEX raw_frame_order ON raw_frame (account, device, received, id);
CREATE INDEX raw_frame_received ON raw_frame (received);

-- Sensors of deleted devices whose readings expire.
CREATE TABLE retired_sensor (
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, id)
);

-- Keys in frames that the device's decoder does not map.
CREATE TABLE unmapped_key (
  account BIGINT NOT NULL,
  decoder TEXT NOT NULL,
  key TEXT NOT NULL,
  last_seen BIGINT NOT NULL, -- ns
  readings BIGINT NOT NULL,
  PRIMARY KEY (account, decoder, key)
);

-- Domain: rules

-- Rules. failures, failed_at and failure count and describe failed expressions since the last
-- change of the rule.
CREATE TABLE rule (
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  created BIGINT NOT NULL,               -- ns
  silent BIGINT NOT NULL,                -- 1: the rule detects silent devices
  doc TEXT NOT NULL,
  failures BIGINT NOT NULL DEFAULT 0,
  failed_at BIGINT NOT NULL DEFAULT 0,
  failure TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (account, id)
);
CREATE INDEX rule_silent ON rule (account) WHERE silent = 1;

-- The state of a rule for a device, see rule.PairState. Times are in nanoseconds, except due.
CREATE TABLE rule_state (
  account BIGINT NOT NULL,
  device TEXT NOT NULL,
  rule TEXT NOT NULL,
  alarm TEXT NOT NULL DEFAULT '',
  raised_at BIGINT NOT NULL DEFAULT 0,
  since BIGINT NOT NULL DEFAULT 0,
  began TEXT NOT NULL DEFAULT '',
  heard BIGINT NOT NULL DEFAULT 0,       -- PairState.At
  frame_at BIGINT NOT NULL DEFAULT 0,
  record TEXT NOT NULL DEFAULT '',
  repeats BIGINT NOT NULL DEFAULT 0,
  ran_at BIGINT NOT NULL DEFAULT 0,
  due BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (account, device, rule)
);
CREATE INDEX rule_state_rule ON rule_state (account, rule);
CREATE INDEX rule_state_due ON rule_state (due) WHERE due > 0;

-- Raised alarms, and cleared ones as history. Times are in nanoseconds.
CREATE TABLE alarm (
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  rule TEXT NOT NULL,
  device TEXT NOT NULL,
  state TEXT NOT NULL,
  raised BIGINT NOT NULL,
  cleared BIGINT NOT NULL DEFAULT 0,
  raised_by TEXT NOT NULL,
  cleared_by TEXT NOT NULL DEFAULT '',
  doc TEXT NOT NULL,
  PRIMARY KEY (account, id)
);
CREATE INDEX alarm_raised ON alarm (account, raised, id);
CREATE INDEX alarm_by_rule ON alarm (account, rule, raised, id);
CREATE INDEX alarm_by_device ON alarm (account, device, raised, id);
CREATE INDEX alarm_open ON alarm (account, device, rule) WHERE state = 'raised';
-- The list of the alarms of all accounts, newest first.
CREATE INDEX alarm_raised_of_all ON alarm (raised, id);

-- Mutes of alarms from since to until; rule or device is '' for any.
CREATE TABLE alarm_mute (
  account BIGINT NOT NULL,
  rule TEXT NOT NULL,
  device TEXT NOT NULL,
  since BIGINT NOT NULL,
  until BIGINT NOT NULL,
  muted_by TEXT NOT NULL,
  PRIMARY KEY (account, rule, device, since)
);

-- The time from which a device counts as silent. Only devices of accounts with a rule for
-- silent devices have a row.
CREATE TABLE rule_watch (
  account BIGINT NOT NULL,
  device TEXT NOT NULL,
  due BIGINT NOT NULL,
  PRIMARY KEY (account, device)
) {clustered};
CREATE INDEX rule_watch_due ON rule_watch (due) WHERE due > 0;

-- Accounts with a new rule for silent devices, whose devices get a row in rule_watch one
-- after another. after is the last device that has one.
CREATE TABLE rule_enrolment (
  account BIGINT NOT NULL PRIMARY KEY,
  due BIGINT NOT NULL,
  after TEXT NOT NULL DEFAULT ''
);

-- Frames that rules collect for batches, and frames sent recently: each frame is sent once.
CREATE TABLE rule_item (
  account BIGINT NOT NULL,
  rule TEXT NOT NULL,
  record TEXT NOT NULL,
  frame_at BIGINT NOT NULL,              -- ns
  added BIGINT NOT NULL,
  taken BIGINT NOT NULL DEFAULT 0,       -- when the frame was taken for a batch; 0: the frame waits
  doc TEXT NOT NULL,
  PRIMARY KEY (account, rule, record)
);
CREATE INDEX rule_item_waits ON rule_item (account, rule, frame_at, record) WHERE taken = 0;
CREATE INDEX rule_item_taken ON rule_item (taken) WHERE taken > 0;

-- Batches of frames. The row is locked to add and to take frames.
CREATE TABLE rule_batch (
  account BIGINT NOT NULL,
  rule TEXT NOT NULL,
  n BIGINT NOT NULL DEFAULT 0,           -- number of frames
  due BIGINT NOT NULL DEFAULT 0,         -- when the first frame has waited long enough; 0: never
  PRIMARY KEY (account, rule)
);
CREATE INDEX rule_batch_due ON rule_batch (due) WHERE due > 0;

-- Domain: usage

-- Usage records of SIMs in the order of arrival; records of one batch in the order of ids.
CREATE TABLE usage_record (
  n {serial},
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  iccid TEXT NOT NULL,
  pool TEXT NOT NULL,      -- pool of the SIM when the record arrived
  started BIGINT NOT NULL, -- µs
  type TEXT NOT NULL,
  bytes BIGINT NOT NULL,
  duration BIGINT NOT NULL
);
CREATE UNIQUE INDEX usage_record_id ON usage_record (account, id);
CREATE INDEX usage_record_sim ON usage_record (account, iccid, started); -- only sqlite
CREATE INDEX usage_record_time ON usage_record (account, started); -- only sqlite
-- Without statistics, PostgreSQL uses the later of two similar indexes; the index by SIM is the
-- narrower one.
CREATE INDEX usage_record_time ON usage_record (account, started, n); -- only postgresql
CREATE INDEX usage_record_sim ON usage_record (account, iccid, started, n); -- only postgresql

-- Usage of subjects (SIMs, pools) in a month.
CREATE TABLE usage_total (
  account BIGINT NOT NULL,
  scope TEXT NOT NULL,
  subject TEXT NOT NULL,
  month BIGINT NOT NULL, -- year × 100 + month
  bytes BIGINT NOT NULL,
  done BIGINT NOT NULL,  -- usage.Steps
  PRIMARY KEY (account, scope, subject, month)
) {clustered} {busy};

CREATE TABLE usage_report (
  id TEXT NOT NULL PRIMARY KEY,
  begun BIGINT NOT NULL
) {clustered};
CREATE INDEX usage_report_begun ON usage_report (begun);

CREATE TABLE usage_report_row (
  report TEXT NOT NULL,
  subscriber TEXT NOT NULL,
  iccid TEXT NOT NULL,
  company TEXT NOT NULL,
  bytes BIGINT NOT NULL,
  PRIMARY KEY (report, subscriber, iccid)
) {clustered};

-- Domain: calls

-- Records of SIP calls.
CREATE TABLE sip_call (
  account BIGINT NOT NULL,
  key TEXT NOT NULL,
  started BIGINT NOT NULL,
  answered BIGINT NOT NULL,
  ended BIGINT NOT NULL,
  id TEXT NOT NULL,
  caller TEXT NOT NULL,
  callee TEXT NOT NULL,
  duration BIGINT NOT NULL,
  billsec BIGINT NOT NULL,
  disposition TEXT NOT NULL,
  trunk TEXT NOT NULL,
  PRIMARY KEY (account, key)
) {clustered};
CREATE INDEX sip_call_started ON sip_call (account, started, key);

-- Domain: ledgers

-- Declarations of ledgers.
CREATE TABLE ledger (
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, id)
);

-- The state of a ledger's log. The row stays when the declaration is deleted: its hash
-- never changes. The row is locked to number entries.
CREATE TABLE ledger_log (
  account BIGINT NOT NULL,
  ledger TEXT NOT NULL,
  hash TEXT NOT NULL,
  entries BIGINT NOT NULL,
  sealed BIGINT NOT NULL,
  head TEXT NOT NULL,
  sealed_head TEXT NOT NULL DEFAULT '', -- the head, sealed by a key of the account, in base64
  PRIMARY KEY (account, ledger)
) {busy};

-- Entries of logs. A job has at most one entry of a token.
CREATE TABLE ledger_entry (
  account BIGINT NOT NULL,
  ledger TEXT NOT NULL,
  sequence BIGINT NOT NULL,
  token TEXT NOT NULL,
  job TEXT NOT NULL,                   -- '': the generation of the token
  metadata TEXT NOT NULL,              -- metadata that the entry appends to the token
  entry BYTEA NOT NULL,
  position BIGINT NOT NULL DEFAULT 0,  -- position among the entries of the token
  claims BIGINT NOT NULL DEFAULT 0,    -- number of claims of the token up to this entry
  mac BYTEA NOT NULL DEFAULT '',       -- covers the row and the MAC of the token's previous entry
  PRIMARY KEY (account, ledger, sequence)
);
CREATE UNIQUE INDEX ledger_entry_job ON ledger_entry (account, token, job);
CREATE INDEX ledger_entry_metadata ON ledger_entry (account, token, sequence) WHERE metadata <> '';
-- The history of a token in its order, and its last claim.
CREATE INDEX ledger_entry_token ON ledger_entry (account, token, sequence);

-- The stored hashes of a log's tree, by their index in tlog.
CREATE TABLE ledger_tree (
  account BIGINT NOT NULL,
  ledger TEXT NOT NULL,
  idx BIGINT NOT NULL,
  hash BYTEA NOT NULL,
  PRIMARY KEY (account, ledger, idx)
) {clustered};

-- Tokens. doc never changes.
CREATE TABLE ledger_token (
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  claimed BIGINT NOT NULL, -- number of claims
  doc TEXT NOT NULL,
  PRIMARY KEY (account, id)
) {busy};

-- The account of each token.
CREATE TABLE ledger_home (
  token TEXT NOT NULL PRIMARY KEY,
  account BIGINT NOT NULL
) {clustered};

-- Sealed values by kind: the keyset of an account, its secrets by name, private tokens by
-- job.
CREATE TABLE ledger_sealed (
  account BIGINT NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  sealed BYTEA NOT NULL,
  expires BIGINT NOT NULL,
  PRIMARY KEY (account, kind, name)
);
CREATE INDEX ledger_sealed_expires ON ledger_sealed (expires) WHERE expires > 0;

-- Domain: files

-- Complete files, each with its content.
CREATE TABLE file (
  name TEXT NOT NULL PRIMARY KEY,
  content BIGINT NOT NULL,
  size BIGINT NOT NULL,
  expires BIGINT NOT NULL
);
CREATE INDEX file_expires ON file (expires) WHERE expires > 0;

-- Contents of complete, unfinished and replaced files. Contents of replaced files, and of files
-- whose writer crashed, expire soon.
CREATE TABLE file_content (
  id {serial},
  expires BIGINT NOT NULL
);
CREATE INDEX file_content_expires ON file_content (expires) WHERE expires > 0;

-- Chunks of contents. Most contents are compressed already.
CREATE TABLE file_chunk (
  content BIGINT NOT NULL,
  idx BIGINT NOT NULL,
  bytes BYTEA NOT NULL,
  PRIMARY KEY (content, idx)
);
ALTER TABLE file_chunk ALTER COLUMN bytes SET STORAGE EXTERNAL; -- only postgresql
