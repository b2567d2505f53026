-- Users of the admin API. A session is valid for the version of its user that it began
-- with: a change of the user ends it.
CREATE TABLE admin_user (
  id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  subject TEXT NOT NULL DEFAULT '',      -- issuer and subject, of users of a provider
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
