package db

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"sync/atomic"
	"time"
)

// CommitsSuffix is appended to the name of a SQLite database for the file that has the
// number of its transactions.
const CommitsSuffix = "-commits"

// Progress counts the transactions of a SQLite database and records the positions of the
// journals up to which the database is complete. Each transaction writes both, see Follow.
// A database that lost its newest transactions, for example because its write-ahead log was
// removed or an earlier copy was restored, therefore has the count and the positions of its
// last remaining transaction. The count is also in a file outside of the database, which
// shows at the next start that transactions are missing. The file is not synced: it survives
// the end of the process, but after a power failure it may have an earlier count.
//
// Only the writer of the database may call Record and Committed.
type Progress struct {
	file     *os.File
	now      func() time.Time
	loss     Loss
	journals atomic.Pointer[func() map[string]uint64] // nil until Follow

	commits   uint64 // never decreases: after a loss the count continues from that of the file
	pending   uint64 // the count including the running transaction
	changes   int64  // row changes of the connection up to the last transaction
	positions map[string]uint64
}

// Loss describes the transactions that a database lacks when it is opened.
type Loss struct {
	// Found means that transactions are missing. Unknown means that this cannot be
	// determined, because the file with the count is missing or damaged.
	Found, Unknown bool
	// Since is the time of the last transaction in the database, zero if it has none. Until
	// is the time of the last transaction that was counted, zero if unknown.
	Since, Until time.Time
	// Positions are the sequences of the journals up to which the database is complete.
	Positions map[string]uint64
}

// OpenProgress reads the progress of a database, or creates it, and compares the count with
// the file at path.
func OpenProgress(ctx context.Context, db *sql.DB, path string, now func() time.Time) (*Progress, error) {
	p := &Progress{now: now, positions: make(map[string]uint64)}
	if _, err := db.ExecContext(ctx, `
		CREATE TABLE IF NOT EXISTS progress (
		  id INTEGER PRIMARY KEY CHECK (id = 1),
		  commits INTEGER NOT NULL,
		  at INTEGER NOT NULL, -- milliseconds since 1970 of the last transaction
		  positions TEXT NOT NULL -- JSON: sequences by kind of traffic
		);
		INSERT INTO progress VALUES (1, 0, 0, '{}') ON CONFLICT DO NOTHING`); err != nil {
		return nil, err
	}
	var lastMillis int64
	var positions string
	if err := db.QueryRowContext(ctx, "SELECT commits, at, positions FROM progress").Scan(&p.commits, &lastMillis, &positions); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(positions), &p.positions); err != nil {
		return nil, fmt.Errorf("positions of the journals: %w", err)
	}
	var err error
	if p.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	line, err := io.ReadAll(io.LimitReader(p.file, 1024))
	if err != nil {
		return nil, errors.Join(err, p.file.Close())
	}
	commits, until, intact := parseCommits(line)
	p.loss = Loss{
		Found: intact && p.commits < commits, Unknown: !intact && p.commits > 0, Until: until,
		Positions: maps.Clone(p.positions),
	}
	p.commits = max(p.commits, commits)
	if lastMillis > 0 {
		p.loss.Since = time.UnixMilli(lastMillis)
	}
	return p, nil
}

// Loss returns the transactions that the database lacked when it was opened.
func (p *Progress) Loss() Loss { return p.loss }

// Follow starts counting each transaction and writing the positions that journals returns.
// If journals omits a kind of traffic, its position stays. Before Follow, no transaction is
// counted, so that the next start finds a loss again even if the database was written to.
func (p *Progress) Follow(journals func() map[string]uint64) { p.journals.Store(&journals) }

// recordProgress changes nothing if the connection has changed no row since the last
// transaction, so that an idle database is not written to. total_changes does not include the
// changes of the running statement.
const recordProgress = `
UPDATE progress SET commits = $1, at = $2, positions = $3
WHERE total_changes() <> $4
RETURNING total_changes() + 1`

// Record writes the progress as part of a transaction.
func (p *Progress) Record(ctx context.Context, tx runner) error {
	p.pending = p.commits
	journals := p.journals.Load()
	if journals == nil {
		return nil
	}
	maps.Copy(p.positions, (*journals)())
	positions, err := json.Marshal(p.positions)
	if err != nil {
		return err
	}
	rows, err := tx.QueryContext(ctx, recordProgress, int64(p.commits+1), p.now().UnixMilli(), string(positions), p.changes)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := rows.Scan(&p.changes); err != nil {
			return err
		}
		p.pending++
	}
	return rows.Err()
}

// Committed counts the transaction of the last Record, which is on disk. If the file cannot be
// written, it keeps its count, and a later loss may not be noticed.
func (p *Progress) Committed() {
	if p.pending == p.commits {
		return
	}
	p.commits = p.pending
	_, _ = p.file.WriteAt(formatCommits(p.commits, p.now()), 0)
}

// Close closes the file.
func (p *Progress) Close() error {
	if err := p.file.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil // a second Close is not an error, like that of sql.DB
}

// formatCommits returns the content of the file. Its length is always the same.
func formatCommits(commits uint64, t time.Time) []byte {
	text := fmt.Sprintf("%020d %020d", commits, t.UnixMilli())
	return fmt.Appendf(nil, "%s %08x\n", text, crc32.ChecksumIEEE([]byte(text)))
}

func parseCommits(line []byte) (commits uint64, t time.Time, intact bool) {
	var millis int64
	if _, err := fmt.Sscanf(string(line), "%d %d", &commits, &millis); err != nil {
		return 0, time.Time{}, false
	}
	t = time.UnixMilli(millis)
	if string(formatCommits(commits, t)) != string(line) {
		return 0, time.Time{}, false
	}
	return commits, t, true
}
