// Package file provides files that expire. They are stored in the database, so that every
// gateway serves what one of them made.
//
// A file is written as a stream of chunks and can be opened once the last of them
// is there: its row then names its content. One that is written again is replaced
// in that moment; what reads the former content reads it to its end. Chunks of a
// writer that died are swept when their content has not grown for an hour.
package file

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
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
type Store struct{ db *db.DB }

// New returns the store of files in a database.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// Open opens a file to read it once from its beginning, and returns its size in
// bytes; relay.KindNotFound if there is none or it has expired. What is opened can
// be read for an hour longer. Reading goes on when ctx ends: an answer is streamed
// after its handler has returned.
func (s *Store) Open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	r, err := db.One(ctx, s.db, "file "+name, `
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
	db      *db.DB
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
	chunk, err := db.Value[[]byte](r.ctx, r.db, "file "+r.name, `
SELECT bytes FROM file_chunk WHERE content = $1 AND idx = $2`, r.content, r.next)
	if db.IsNotFound(err) || err == nil && (len(chunk) == 0 || int64(len(chunk)) > r.left) {
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
	return s.db.Repeat(ctx, "file contents", 1, func(ctx context.Context, tx *db.Tx) (int, error) {
		return sweepContent(ctx, tx, now)
	})
}

// sweepContent deletes some chunks of a content that has expired, and the content
// after its last. It returns 0 if there is none.
func sweepContent(ctx context.Context, tx *db.Tx, now time.Time) (int, error) {
	const noun = "file content"
	ids, err := db.Values[int64](ctx, tx, noun, `
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

const expireContent = `
UPDATE file_content SET expires = $1 WHERE id = $2`

// Write makes a file of what fill writes, or replaces the one of the name, and
// keeps it for a time from its end on; 0 means for good. It can be opened when
// Write returns nil, and not after fill has failed.
func (s *Store) Write(ctx context.Context, name string, keep time.Duration, fill func(to io.Writer) error) error {
	w, err := s.begin(ctx, name)
	if err != nil {
		return err
	}
	err = fill(w)
	if err == nil {
		err = w.flush()
	}
	if err != nil {
		return errors.Join(err, w.discard())
	}
	return w.commit(keep) // may have happened despite an error: nothing is discarded
}

// writer writes a content chunk by chunk. Not safe for concurrent use.
type writer struct {
	ctx     context.Context // of Store.Write: an io.Writer has none
	db      *db.DB
	noun    string
	name    string
	content int64
	next    int64  // index of the next chunk
	size    int64  // of the chunks that are written
	chunk   []byte // not written
	failed  error  // of a flush, after which nothing is written
}

func (s *Store) begin(ctx context.Context, name string) (*writer, error) {
	noun := "file " + name
	w := &writer{ctx: ctx, db: s.db, noun: noun, name: name, chunk: make([]byte, 0, chunkSize)}
	return w, s.db.Write(ctx, noun, func(ctx context.Context, tx *db.Tx) (err error) {
		w.content, err = db.Value[int64](ctx, tx, noun, `
INSERT INTO file_content (expires) VALUES ($1) RETURNING id`, tx.Now().Add(grace))
		return err
	})
}

// Write takes bytes, and writes a chunk when it is full.
func (w *writer) Write(b []byte) (n int, err error) {
	for len(b) > 0 && w.failed == nil {
		taken := min(chunkSize-len(w.chunk), len(b))
		w.chunk = append(w.chunk, b[:taken]...)
		b, n = b[taken:], n+taken
		if len(w.chunk) == chunkSize {
			w.failed = w.flush()
		}
	}
	return n, w.failed
}

func (w *writer) flush() error {
	if w.failed != nil || len(w.chunk) == 0 {
		return w.failed
	}
	err := w.db.Write(w.ctx, w.noun, func(ctx context.Context, tx *db.Tx) error {
		return tx.RunAll(ctx, w.noun, w.renew(tx, tx.Now().Add(grace)), db.Do(`
INSERT INTO file_chunk (content, idx, bytes) VALUES ($1, $2, $3) ON CONFLICT (content, idx) DO NOTHING`, w.content, w.next, w.chunk))
	})
	if err != nil {
		return err
	}
	w.next, w.size, w.chunk = w.next+1, w.size+int64(len(w.chunk)), w.chunk[:0]
	return nil
}

// renew is the statement that sets when the content expires, unless the sweep may have
// some of it, and locks it against being swept. The zero time is never.
func (w *writer) renew(tx *db.Tx, expires time.Time) db.Statement {
	return db.Do(`
UPDATE file_content SET expires = $1 WHERE id = $2 AND expires > $3`, expires, w.content, tx.Now()).Or(
		relay.Errorf(relay.KindUnavailable, "%s: nothing was written for %s, and what had been was removed", w.noun, grace))
}

// commit makes the content that of the file. The content that it replaces is kept
// for what reads it.
func (w *writer) commit(keep time.Duration) error {
	return w.db.Write(w.ctx, w.noun, func(ctx context.Context, tx *db.Tx) error {
		var expires, gone time.Time
		if keep > 0 {
			expires = tx.Now().Add(keep)
			gone = expires.Add(grace)
		}
		if err := tx.Run(ctx, w.noun, `
INSERT INTO file (name, content, size, expires) VALUES ($1, 0, 0, 1) ON CONFLICT (name) DO NOTHING`, w.name); err != nil {
			return err
		}
		former, err := db.Value[int64](ctx, tx, w.noun, `
SELECT content FROM file WHERE name = $1 {for update}`, w.name)
		if err != nil {
			return err
		}
		return tx.RunAll(ctx, w.noun, db.Do(`
UPDATE file SET content = $2, size = $3, expires = $4 WHERE name = $1`, w.name, w.content, w.size, expires),
			w.renew(tx, gone), db.Do(expireContent, tx.Now().Add(grace), former))
	})
}

// discardTime bounds the discarding of what was not finished, which is also swept.
const discardTime = 5 * time.Second

// discard leaves the content to the next sweep.
func (w *writer) discard() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), discardTime)
	defer cancel()
	return w.db.Run(ctx, w.noun, expireContent, w.db.Now(), w.content)
}
