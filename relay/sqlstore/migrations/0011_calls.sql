-- Records of SIP calls.
CREATE TABLE sip_call (
  account BIGINT NOT NULL, key TEXT NOT NULL, started BIGINT NOT NULL, answered BIGINT NOT NULL, ended BIGINT NOT NULL,
  id TEXT NOT NULL, caller TEXT NOT NULL, callee TEXT NOT NULL, duration BIGINT NOT NULL, billsec BIGINT NOT NULL,
  disposition TEXT NOT NULL, trunk TEXT NOT NULL,
  PRIMARY KEY (account, key)
) {clustered};
CREATE INDEX sip_call_started ON sip_call (account, started, key);
