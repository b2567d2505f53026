-- Jobs. place is the order of creation; doc is the JSON of what never changes.
CREATE TABLE job (
  place {serial},
  account BIGINT NOT NULL,
  id TEXT NOT NULL,
  list TEXT NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  doc TEXT NOT NULL,
  state TEXT NOT NULL,
  due BIGINT NOT NULL,     -- ms when somebody may work on it, which a lease puts off; 0 when it has ended
  tries BIGINT NOT NULL,
  updated BIGINT NOT NULL, -- ms
  expires BIGINT NOT NULL, -- ms; 0 for never
  error TEXT NOT NULL,
  result TEXT NOT NULL,
  settled TEXT NOT NULL,   -- JSON of what it has brought about, saved in one transaction with that
  UNIQUE (account, id)
) {busy};
CREATE INDEX job_due ON job (account, due, place, id) WHERE due > 0;
CREATE INDEX job_expires ON job (expires) WHERE expires > 0;
-- The lists of an account, by all that a filter may name.
CREATE INDEX job_list ON job (account, list, place, expires) WHERE list <> '';
CREATE INDEX job_state ON job (account, list, state, place, expires) WHERE list <> '';
CREATE INDEX job_kind ON job (account, list, kind, place, expires) WHERE list <> '';
CREATE INDEX job_kind_state ON job (account, list, kind, state, place, expires) WHERE list <> '';
CREATE INDEX job_name ON job (account, list, name, place, kind, state, expires) WHERE list <> '' AND name <> '';
