-- Accounts and their credentials.
CREATE TABLE account (
  id BIGINT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  doc TEXT NOT NULL
);

-- One row: the last id that was assigned. Its lock is held while an account is saved.
CREATE TABLE account_id (
  last BIGINT NOT NULL
);
INSERT INTO account_id (last) VALUES (0);

-- A source belongs to the last token that was saved with it; the others have ''.
CREATE TABLE token (
  hash TEXT NOT NULL PRIMARY KEY,
  source TEXT NOT NULL,
  doc TEXT NOT NULL
);
CREATE UNIQUE INDEX token_source ON token (source) WHERE source <> '';

-- The id is a username; account is 0.
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

-- One row, id 1.
CREATE TABLE inventory (
  id BIGINT NOT NULL PRIMARY KEY,
  doc BYTEA NOT NULL
);

-- Credit: one busy row an account, and what changed it.
CREATE TABLE credit (
  account BIGINT NOT NULL PRIMARY KEY,
  balance BIGINT NOT NULL,
  last BIGINT NOT NULL
) {busy};

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

-- What networks said about numbers, and the simulator's networks.
CREATE TABLE lookup (
  number TEXT NOT NULL PRIMARY KEY,
  doc TEXT NOT NULL,
  expires BIGINT NOT NULL
);
CREATE INDEX lookup_expires ON lookup (expires) WHERE expires > 0;

-- The id is a prefix; account is 0.
CREATE TABLE network (
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (account, id)
);
