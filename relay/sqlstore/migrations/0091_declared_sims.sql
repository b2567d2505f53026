-- The SIMs that the inventory declares. The rest of it stands in inventory; SIMs that
-- an earlier version kept there move here with the next document applied. A SIM that
-- moves to another account while a document still needs it in the first is in both.
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
