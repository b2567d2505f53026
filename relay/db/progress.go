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

// Progress counts the transactions of a SQLite database and keeps the positions of the
// journals up to which the database is complete. Each transaction writes both, see Follow.
// A database that has lost its newest transactions, since its write-ahead log was damaged
// or removed or an earlier copy was put back, therefore has the count and the positions of
// the last transaction that is left. The count is also in a file outside of the database,
// which shows at the next start that transactions are missing. The file is not synced: it
// survives the end of the process, and after a power failure it may have an earlier count.
//
// Record and Committed are for the one writer of the database.
type Progress struct {
	file     *os.File
	now      func() time.Time
	loss     Loss
	journals atomic.Pointer[func() map[string]uint64] // nil until Follow

	commits   uint64 // never falls: a database that lost transactions goes on from the file's
	pending   uint64 // with the running transaction
	changes   int64  // of rows by the connection until the last transaction
	positions map[string]uint64
}

// Loss names which transactions a database lacks at its start.
type Loss struct {
	// Found means that the database has fewer transactions than it had. Unknown means that
	// this cannot be determined, since the file with the number is missing or damaged.
	Found, Unknown bool
	// Since is the time of the last transaction that the database has; zero if it has
	// none. Until is the time of the last one that it had; zero if that is unknown.
	Since, Until time.Time
	// Positions are the sequences of the journals up to which the database is complete.
	Positions map[string]uint64
}

// OpenProgress reads the progress of a database, creating it if there is none, and
// compares the count with the file at path.
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

// Loss returns which transactions the database lacked when it was opened.
func (p *Progress) Loss() Loss { return p.loss }

// Follow has each transaction be counted and write the positions that journals returns; a
// kind that is omitted keeps its position. Until then a loss is found again at the next
// start, also if the database is written to.
func (p *Progress) Follow(journals func() map[string]uint64) { p.journals.Store(&journals) }

// recordProgress changes nothing if the connection has changed no row since the last
// transaction, so that an idle database is not written. total_changes does not count the
// statement itself.
const recordProgress = `
UPDATE progress SET commits = $1, at = $2, positions = $3
WHERE total_changes() <> $4
RETURNING total_changes() + 1`

// Record writes the progress as a part of a transaction.
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

// Committed notes that the transaction of the last Record is on disk. A file that cannot
// be written keeps its count, so that a later loss may not be noticed.
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
	return nil // a second Close, as of sql.DB, is not an error
}

// formatCommits returns the content of the file, which has always the same length.
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
