package usage

// File is the name of the database within the directory.
const File = "usage.db"

// version is that of the schema; a database of a newer one is refused.
const version = 1

// schema is version 1. Times are microseconds since 1970, types the index in
// cdr.Types, months year × 100 + month.
const schema = `
CREATE TABLE IF NOT EXISTS record (
  n INTEGER PRIMARY KEY, account INTEGER NOT NULL, iccid TEXT NOT NULL, start INTEGER NOT NULL,
  type INTEGER NOT NULL, bytes INTEGER NOT NULL, duration INTEGER NOT NULL, id TEXT NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS record_id ON record (account, id);
CREATE INDEX IF NOT EXISTS record_sim ON record (account, iccid, start);
CREATE INDEX IF NOT EXISTS record_time ON record (account, start);
CREATE TABLE IF NOT EXISTS total (
  account INTEGER NOT NULL, month INTEGER NOT NULL, scope TEXT NOT NULL, subject TEXT NOT NULL,
  bytes INTEGER NOT NULL, done INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (account, month, scope, subject)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS report (id TEXT PRIMARY KEY, begun INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS report_row (
  report TEXT NOT NULL, subscriber TEXT NOT NULL, iccid TEXT NOT NULL, company TEXT NOT NULL, bytes INTEGER NOT NULL,
  PRIMARY KEY (report, subscriber, iccid)
) WITHOUT ROWID;`

const (
	insert = `INSERT INTO record (account, iccid, start, type, bytes, duration, id) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (account, id) DO NOTHING`
	// add stops at 2^62, far from where a sum would become no whole number any more,
	// which nobody could read.
	add = `INSERT INTO total (account, month, scope, subject, bytes) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (account, month, scope, subject) DO UPDATE SET bytes = MIN(bytes + excluded.bytes, 4611686018427387904)`
	readTotal = `SELECT bytes, done FROM total WHERE account = ? AND month = ? AND scope = ? AND subject = ?`
	markDone  = `INSERT INTO total (account, month, scope, subject, bytes, done) VALUES (?, ?, ?, ?, 0, ?)
ON CONFLICT (account, month, scope, subject) DO UPDATE SET done = done | excluded.done`

	columns = `SELECT n, iccid, start, type, bytes, duration, id FROM record `
	readAll = columns + `INDEXED BY record_time WHERE account = ? AND start < ? AND (start, n) > (?, ?) ORDER BY start, n LIMIT ?`
	readSIM = columns + `INDEXED BY record_sim WHERE account = ? AND iccid = ? AND start < ? AND (start, n) > (?, ?)
ORDER BY start, n LIMIT ?`
	anyAll = `SELECT EXISTS (SELECT 1 FROM record INDEXED BY record_time WHERE account = ? AND start >= ? AND start < ?)`
	anySIM = `SELECT EXISTS (SELECT 1 FROM record INDEXED BY record_sim WHERE account = ? AND iccid = ? AND start >= ? AND start < ?)`
	sums   = `SELECT iccid, SUM(bytes) FROM record INDEXED BY record_time WHERE account = ? AND start >= ? AND start < ?
GROUP BY iccid ORDER BY iccid`

	addRow = `INSERT INTO report_row (report, subscriber, iccid, company, bytes) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (report, subscriber, iccid) DO UPDATE SET company = excluded.company, bytes = excluded.bytes`
	readRows = `SELECT iccid, subscriber, company, bytes FROM report_row WHERE report = ? ORDER BY subscriber, iccid LIMIT ? OFFSET ?`
	// clearRows takes rows of a report in portions, so that no transaction is long.
	clearRows = `DELETE FROM report_row WHERE (report, subscriber, iccid) IN
(SELECT report, subscriber, iccid FROM report_row WHERE report = ? LIMIT 5000)`
)
