-- Changes made over the admin API. An id sorts by time. A row is saved before the
-- change is made and completed after it: an outcome of 'started' is one whose end
-- nobody recorded.
CREATE TABLE audit_entry (
  id TEXT NOT NULL PRIMARY KEY,
  at BIGINT NOT NULL,
  actor TEXT NOT NULL,
  operation TEXT NOT NULL,
  account BIGINT NOT NULL DEFAULT 0,
  outcome TEXT NOT NULL,
  target TEXT NOT NULL DEFAULT '',       -- what was changed: an id or a name
  doc TEXT NOT NULL
);
CREATE INDEX audit_entry_actor ON audit_entry (actor, id);
CREATE INDEX audit_entry_operation ON audit_entry (operation, id);
CREATE INDEX audit_entry_account ON audit_entry (account, id);
