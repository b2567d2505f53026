-- Rules. silent is 1 for those that look for silent devices. failures and what follows
-- are about expressions that failed since the rule was changed.
CREATE TABLE rule (
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  created BIGINT NOT NULL,               -- in nanoseconds
  silent BIGINT NOT NULL,
  doc TEXT NOT NULL,
  failures BIGINT NOT NULL DEFAULT 0,
  failed_at BIGINT NOT NULL DEFAULT 0,
  failure TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (account, id)
);
CREATE INDEX rule_silent ON rule (account) WHERE silent = 1;

-- What stands between rules and devices, see rule.Standing. Times are in nanoseconds,
-- but for due.
CREATE TABLE rule_state (
  account BIGINT NOT NULL,
  device TEXT NOT NULL,
  rule TEXT NOT NULL,
  alarm TEXT NOT NULL DEFAULT '',
  raised_at BIGINT NOT NULL DEFAULT 0,
  since BIGINT NOT NULL DEFAULT 0,
  began TEXT NOT NULL DEFAULT '',
  heard BIGINT NOT NULL DEFAULT 0,       -- Standing.At
  frame_at BIGINT NOT NULL DEFAULT 0,
  record TEXT NOT NULL DEFAULT '',
  repeats BIGINT NOT NULL DEFAULT 0,
  ran_at BIGINT NOT NULL DEFAULT 0,
  due BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (account, device, rule)
);
CREATE INDEX rule_state_rule ON rule_state (account, rule);
CREATE INDEX rule_state_due ON rule_state (due) WHERE due > 0;

-- Alarms: raised ones, and cleared ones as history. Times are in nanoseconds.
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

-- When a device may be silent next; devices of accounts that have a rule for it.
CREATE TABLE rule_watch (
  account BIGINT NOT NULL,
  device TEXT NOT NULL,
  due BIGINT NOT NULL,
  PRIMARY KEY (account, device)
) {clustered};
CREATE INDEX rule_watch_due ON rule_watch (due) WHERE due > 0;

-- Accounts whose devices have to be watched, since a rule for it is new; after is the
-- device up to which they are.
CREATE TABLE rule_enrolment (
  account BIGINT NOT NULL PRIMARY KEY,
  due BIGINT NOT NULL,
  after TEXT NOT NULL DEFAULT ''
);

-- Frames that rules have collected for batches, and those that were sent of late: a
-- frame is sent once. taken is when it was, 0 while it waits.
CREATE TABLE rule_item (
  account BIGINT NOT NULL,
  rule TEXT NOT NULL,
  record TEXT NOT NULL,
  frame_at BIGINT NOT NULL,              -- in nanoseconds
  added BIGINT NOT NULL,
  taken BIGINT NOT NULL DEFAULT 0,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, rule, record)
);
CREATE INDEX rule_item_waits ON rule_item (account, rule, frame_at, record) WHERE taken = 0;
CREATE INDEX rule_item_taken ON rule_item (taken) WHERE taken > 0;

-- How many frames a batch has, and when its first has waited long enough, 0 for never.
-- The row is locked to add and to take frames.
CREATE TABLE rule_batch (
  account BIGINT NOT NULL,
  rule TEXT NOT NULL,
  n BIGINT NOT NULL DEFAULT 0,
  due BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (account, rule)
);
CREATE INDEX rule_batch_due ON rule_batch (due) WHERE due > 0;
