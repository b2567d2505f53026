-- What SIMs used, in the order of arrival, those of a batch in the order of ids.
-- started is in microseconds since 1970; pool is that of the SIM when the record
-- arrived, empty for none.
CREATE TABLE usage_record (
  n {serial},
  account BIGINT NOT NULL, id TEXT NOT NULL, iccid TEXT NOT NULL, pool TEXT NOT NULL,
  started BIGINT NOT NULL, type TEXT NOT NULL, bytes BIGINT NOT NULL, duration BIGINT NOT NULL
);
CREATE UNIQUE INDEX usage_record_id ON usage_record (account, id);
CREATE INDEX usage_record_sim ON usage_record (account, iccid, started); -- only sqlite
CREATE INDEX usage_record_time ON usage_record (account, started); -- only sqlite
-- While the table has no statistics, PostgreSQL takes the later of two indexes that
-- look alike: by SIM is the narrower one.
CREATE INDEX usage_record_time ON usage_record (account, started, n); -- only postgresql
CREATE INDEX usage_record_sim ON usage_record (account, iccid, started, n); -- only postgresql

-- What subjects (SIMs, pools) used in a month, year × 100 + month.
CREATE TABLE usage_total (
  account BIGINT NOT NULL, scope TEXT NOT NULL, subject TEXT NOT NULL, month BIGINT NOT NULL,
  bytes BIGINT NOT NULL, done BIGINT NOT NULL,
  PRIMARY KEY (account, scope, subject, month)
) {clustered} {busy};

CREATE TABLE usage_report (id TEXT NOT NULL PRIMARY KEY, begun BIGINT NOT NULL) {clustered};
CREATE INDEX usage_report_begun ON usage_report (begun);

CREATE TABLE usage_report_row (
  report TEXT NOT NULL, subscriber TEXT NOT NULL, iccid TEXT NOT NULL, company TEXT NOT NULL, bytes BIGINT NOT NULL,
  PRIMARY KEY (report, subscriber, iccid)
) {clustered};
