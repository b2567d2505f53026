-- Keys that frames have and their decoder does not map. Times are nanoseconds since 1970.
CREATE TABLE unmapped_key (
  account BIGINT NOT NULL,
  decoder TEXT NOT NULL,
  key TEXT NOT NULL,
  last_seen BIGINT NOT NULL,
  readings BIGINT NOT NULL,
  PRIMARY KEY (account, decoder, key)
);
