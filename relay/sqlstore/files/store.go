// Package files keeps files in the record store, for a time, so that every gateway
// serves what one of them made.
//
// A file is written as a stream of chunks and can be opened once the last of them
// is there: its row then names its content. One that is written again is replaced
// in that moment; what reads the former content reads it to its end. Chunks of a
// writer that died are swept when their content has not grown for an hour.
package files

import (
	"context"
	"io"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/sqlstore"
)

const (
	// chunkSize is the size of a chunk in bytes.
	chunkSize = 256 << 10
	// grace is how long a content is kept that no longer grows and is not, or no
	// longer, that of a file.
	grace = time.Hour
	// sweptAtOnce is how many chunks one transaction deletes, 16 MiB.
	sweptAtOnce = 64
)

// Store keeps files. It is safe for concurrent use.
type Store struct{ db *sqlstore.DB }

// New returns the store of files in a database.
func New(db *sqlstore.DB) *Store { return &Store{db: db} }

// Open opens a file to read it once from its beginning, and returns its size in
// bytes; relay.KindNotFound if there is none or it has expired. What is opened can
// be read for an hour longer. Reading goes on when ctx ends: an answer is streamed
// after its handler has returned.
func (s *Store) Open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	r, err := sqlstore.One(ctx, s.db, "file "+name, `
SELECT content, size FROM file WHERE name = $1 AND (expires = 0 OR expires > $2)`, func(r *reader) []any {
		return []any{&r.content, &r.left}
	}, name, s.db.Now())
	if err != nil {
		return nil, 0, err
	}
	r.ctx, r.db, r.name = context.WithoutCancel(ctx), s.db, name
	return &r, r.left, nil
}

// reader reads a content chunk by chunk. Not safe for concurrent use.
type reader struct {
	ctx     context.Context // of Open: Read has none
	db      *sqlstore.DB
	name    string
	content int64
	next    int64  // index of the next chunk
	left    int64  // bytes that are not in chunk and not read
	chunk   []byte // not read
}

// Read reads at most one chunk.
func (r *reader) Read(b []byte) (int, error) {
	if len(r.chunk) == 0 {
		if r.left == 0 {
			return 0, io.EOF
		}
		if err := r.load(); err != nil {
			return 0, err
		}
	}
	n := copy(b, r.chunk)
	r.chunk = r.chunk[n:]
	return n, nil
}

func (r *reader) load() error {
	chunk, err := sqlstore.Value[[]byte](r.ctx, r.db, "file "+r.name, `
SELECT bytes FROM file_chunk WHERE content = $1 AND idx = $2`, r.content, r.next)
	if sqlstore.IsNotFound(err) || err == nil && (len(chunk) == 0 || int64(len(chunk)) > r.left) {
		return relay.Errorf(relay.KindUnexpected, "file %s: chunk %d: %w", r.name, r.next, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return err
	}
	r.chunk, r.next, r.left = chunk, r.next+1, r.left-int64(len(chunk))
	return nil
}

// Close does nothing: nothing is open between two chunks.
func (r *reader) Close() error { return nil }

// Sweep removes files that have expired, what was replaced and what was left half
// written.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	if err := s.db.SweepExpired(ctx, "files", "file", "name", "expires", now); err != nil {
		return err
	}
	return s.db.Repeat(ctx, "file contents", 1, func(ctx context.Context, tx *sqlstore.Tx) (int, error) {
		return sweepContent(ctx, tx, now)
	})
}

// sweepContent deletes some chunks of a content that has expired, and the content
// after its last. It returns 0 if there is none.
func sweepContent(ctx context.Context, tx *sqlstore.Tx, now time.Time) (int, error) {
	const noun = "file content"
	ids, err := sqlstore.Values[int64](ctx, tx, noun, `
SELECT id FROM file_content WHERE expires > 0 AND expires <= $1 ORDER BY expires LIMIT 1 {skip locked}`, now)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	// It cannot be renewed any more, whatever the clock of its writer.
	if err := tx.Run(ctx, noun, expireContent, 1, ids[0]); err != nil {
		return 0, err
	}
	n, err := tx.Exec(ctx, noun, `
DELETE FROM file_chunk WHERE content = $1 AND idx IN (
  SELECT idx FROM file_chunk WHERE content = $1 ORDER BY idx LIMIT $2)`, ids[0], sweptAtOnce)
	if err == nil && n < sweptAtOnce {
		err = tx.Run(ctx, noun, `
DELETE FROM file_content WHERE id = $1`, ids[0])
	}
	return 1, err
}
