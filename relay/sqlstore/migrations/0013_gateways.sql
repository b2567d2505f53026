-- The gateways that work on this database; facts is JSON of gateway.Facts.
CREATE TABLE gateway (
  node TEXT NOT NULL PRIMARY KEY,
  url TEXT NOT NULL,
  version TEXT NOT NULL,
  started BIGINT NOT NULL,
  seen BIGINT NOT NULL,
  facts TEXT NOT NULL
);

-- When periodic work is due again; the gateway that moves the time does it.
CREATE TABLE turn (
  name TEXT NOT NULL PRIMARY KEY,
  due BIGINT NOT NULL
);

-- What the gateways share and was generated: this database's id, secrets.
CREATE TABLE setting (
  name TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
);

-- How far each journal was processed, as this database has seen it. A journal
-- whose own checkpoint is ahead of that belongs to a later state of the database.
CREATE TABLE checkpoint (
  node TEXT NOT NULL,
  kind TEXT NOT NULL,
  seq BIGINT NOT NULL,
  PRIMARY KEY (node, kind)
);
