-- SIMs. imsi and msisdn are '' while unknown, pool and subscriber for none.
CREATE TABLE sim (
  account BIGINT NOT NULL,
  iccid TEXT NOT NULL,
  imsi TEXT NOT NULL,
  msisdn TEXT NOT NULL,
  pool TEXT NOT NULL,
  subscriber TEXT NOT NULL,
  state TEXT NOT NULL,
  requested TEXT NOT NULL,
  job TEXT NOT NULL,        -- id of the job in flight
  service_4g BIGINT NOT NULL,
  service_5g BIGINT NOT NULL,
  pin TEXT NOT NULL,
  pin2 TEXT NOT NULL,
  puk TEXT NOT NULL,
  puk2 TEXT NOT NULL,
  monthly BIGINT NOT NULL,  -- bytes
  warning BIGINT NOT NULL,  -- bytes
  cap TEXT NOT NULL,
  recipients TEXT NOT NULL, -- JSON array; '' for none
  detached TEXT NOT NULL,   -- name of the call that took it out of a pool last
  PRIMARY KEY (account, iccid)
) {clustered} {busy};
-- The lists: of the account, of a pool and of a subscriber, in the order of each column.
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

-- Subscribers. forename and surname are in lower case; doc is the whole.
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

-- How many records each stretch of a list holds, so that totals and places need no
-- count of the whole. A stretch reaches from its start to the next one's; the first
-- starts at ''. A short list has one, of column 0 only.
CREATE TABLE sim_block (
  account BIGINT NOT NULL,
  list TEXT NOT NULL,
  col BIGINT NOT NULL,      -- index of the column that orders the list
  start TEXT NOT NULL,      -- value of the column, \x01, id
  n BIGINT NOT NULL,
  PRIMARY KEY (account, list, col, start)
) {clustered} {busy};
