-- Ledgers as they are declared.
CREATE TABLE ledger (
  account BIGINT NOT NULL, id TEXT NOT NULL, doc TEXT NOT NULL,
  PRIMARY KEY (account, id)
);

-- How the log of a ledger stands. The row stays when the declaration goes: its
-- hash never changes. It is the lock under which entries are numbered.
CREATE TABLE ledger_log (
  account BIGINT NOT NULL, ledger TEXT NOT NULL, hash TEXT NOT NULL,
  entries BIGINT NOT NULL, sealed BIGINT NOT NULL, head TEXT NOT NULL,
  PRIMARY KEY (account, ledger)
) {busy};

-- Entries of logs. A token's entries are of different jobs; that of its
-- generation has none. metadata is what the entry appends to the token.
CREATE TABLE ledger_entry (
  account BIGINT NOT NULL, ledger TEXT NOT NULL, sequence BIGINT NOT NULL,
  token TEXT NOT NULL, job TEXT NOT NULL, metadata TEXT NOT NULL, entry BYTEA NOT NULL,
  PRIMARY KEY (account, ledger, sequence)
);
CREATE UNIQUE INDEX ledger_entry_job ON ledger_entry (account, token, job);
CREATE INDEX ledger_entry_metadata ON ledger_entry (account, token, sequence) WHERE metadata <> '';

-- The stored hashes of a log's tree, by their index in tlog.
CREATE TABLE ledger_tree (
  account BIGINT NOT NULL, ledger TEXT NOT NULL, idx BIGINT NOT NULL, hash BYTEA NOT NULL,
  PRIMARY KEY (account, ledger, idx)
) {clustered};

-- Tokens: what never changes as JSON, and how often they were claimed.
CREATE TABLE ledger_token (
  account BIGINT NOT NULL, id TEXT NOT NULL, claimed BIGINT NOT NULL, doc TEXT NOT NULL,
  PRIMARY KEY (account, id)
) {busy};

-- The account of each token.
CREATE TABLE ledger_home (token TEXT NOT NULL PRIMARY KEY, account BIGINT NOT NULL) {clustered};

-- What is sealed, by kind: the keyset of an account, its secrets by name, private
-- tokens by job.
CREATE TABLE ledger_sealed (
  account BIGINT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, sealed BYTEA NOT NULL, expires BIGINT NOT NULL,
  PRIMARY KEY (account, kind, name)
);
CREATE INDEX ledger_sealed_expires ON ledger_sealed (expires) WHERE expires > 0;
