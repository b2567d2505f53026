// Package file provides files that expire. They are stored in the database, so that each gateway can
// serve them.
//
// The content of a file is written in chunks. After the last chunk, the row of the file is set to the
// new content, and the file can be opened. Writing a file again replaces its content in one step.
// Readers of the old content read it to its end. The sweep deletes contents that belong to no file and
// have not grown for an hour, for example because the writer stopped.
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
	// grace is the time for which a content without a file is kept after its last change.
	grace = time.Hour
	// discardTime limits the time for discarding an incomplete content. The sweep deletes contents
	// that were not discarded.
	discardTime = 5 * time.Second
	// maxSwept is the largest number of chunks that one transaction deletes, 16 MiB.
	maxSwept = 64
)

// Store stores files. It is safe for concurrent use.
type Store struct{ db *db.DB }

// NewStore returns the store of files in a database.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// Open opens a file for one reader and returns its size in bytes. It returns relay.KindNotFound if
// there is no such file or it has expired. The reader works for an hour after the file has expired. It
// also works after ctx has ended, because a response is streamed after its handler has returned.
func (s *Store) Open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	const query = `
		SELECT content, size
		FROM file
		WHERE name = $1
		  AND (expires = 0 OR expires > $2)`
	r, err := db.One(ctx, s.db, "file "+name, query, func(r *reader) []any {
		return []any{&r.content, &r.unread}
	}, name, s.db.Now())
	if err != nil {
		return nil, 0, err
	}
	r.ctx, r.db, r.name = context.WithoutCancel(ctx), s.db, name
	return &r, r.unread, nil
}

// reader reads a content chunk by chunk. Not safe for concurrent use.
type reader struct {
	ctx     context.Context // context of Open, because Read has none
	db      *db.DB
	name    string
	content int64
	index   int64  // index of the next chunk
	unread  int64  // number of bytes that are not loaded
	chunk   []byte // loaded bytes that are not read
}

// Read reads at most one chunk.
func (r *reader) Read(b []byte) (int, error) {
	if len(r.chunk) == 0 {
		if r.unread == 0 {
			return 0, io.EOF
		}
		const query = `
			SELECT bytes
			FROM file_chunk
			WHERE content = $1
			  AND idx = $2`
		chunk, err := db.Value[[]byte](r.ctx, r.db, "file "+r.name, query, r.content, r.index)
		if db.IsNotFound(err) || err == nil && (len(chunk) == 0 || int64(len(chunk)) > r.unread) {
			return 0, relay.Errorf(relay.KindUnexpected, "file %s: chunk %d: %w", r.name, r.index, io.ErrUnexpectedEOF)
		}
		if err != nil {
			return 0, err
		}
		r.chunk, r.index, r.unread = chunk, r.index+1, r.unread-int64(len(chunk))
	}
	n := copy(b, r.chunk)
	r.chunk = r.chunk[n:]
	return n, nil
}

// Close does nothing: the reader holds no connection between two chunks.
func (r *reader) Close() error { return nil }

// Sweep deletes expired files, replaced contents and incomplete contents.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	if err := s.db.SweepExpired(ctx, "files", "file", "name", "expires", now); err != nil {
		return err
	}
	return s.db.Repeat(ctx, "file contents", 1, func(ctx context.Context, tx *db.Tx) (int, error) {
		return sweepContent(ctx, tx, now)
	})
}

// expireContent sets the time at which a content expires.
const expireContent = `
	UPDATE file_content
	SET expires = $1
	WHERE id = $2`

// sweepContent deletes up to maxSwept chunks of an expired content, and the content with its last
// chunk. It returns 0 if no content has expired.
func sweepContent(ctx context.Context, tx *db.Tx, now time.Time) (int, error) {
	const (
		label        = "file content"
		firstExpired = `
			SELECT id
			FROM file_content
			WHERE expires > 0
			  AND expires <= $1
			ORDER BY expires
			LIMIT 1
			{skip locked}`
		deleteChunks = `
			DELETE FROM file_chunk
			WHERE content = $1
			  AND idx IN (SELECT idx FROM file_chunk WHERE content = $1 ORDER BY idx LIMIT $2)`
		deleteContent = `
			DELETE FROM file_content
			WHERE id = $1`
	)
	ids, err := db.Values[int64](ctx, tx, label, firstExpired, now)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	// Expire the content permanently, so that a writer with a slow clock cannot renew it.
	if err := tx.Run(ctx, label, expireContent, 1, ids[0]); err != nil {
		return 0, err
	}
	n, err := tx.Exec(ctx, label, deleteChunks, ids[0], maxSwept)
	if err == nil && n < maxSwept {
		err = tx.Run(ctx, label, deleteContent, ids[0])
	}
	return 1, err
}

// Write creates or replaces a file with the content that fill writes. The file expires after ttl; 0
// means never. The file can be opened after Write has returned nil. If fill fails, the file does not
// change.
func (s *Store) Write(ctx context.Context, name string, ttl time.Duration, fill func(writer io.Writer) error) error {
	w, err := s.begin(ctx, name)
	if err != nil {
		return err
	}
	err = fill(w)
	if err == nil {
		err = w.flush()
	}
	if err != nil { // the next sweep deletes the incomplete content
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTime)
		defer cancel()
		return errors.Join(err, s.db.Run(ctx, w.label, expireContent, s.db.Now(), w.content))
	}
	return w.commit(ttl) // keep the content after an error: the commit may have succeeded
}

// writer writes a content chunk by chunk. Not safe for concurrent use.
type writer struct {
	ctx     context.Context // context of Store.Write, because an io.Writer has none
	db      *db.DB
	label   string
	name    string
	content int64
	index   int64  // index of the next chunk
	size    int64  // size of the saved chunks
	chunk   []byte // bytes that are not saved
	err     error  // error of a flush in Write; nothing is written after it
}

func (s *Store) begin(ctx context.Context, name string) (*writer, error) {
	const insert = `
		INSERT INTO file_content (expires)
		VALUES ($1)
		RETURNING id`
	label := "file " + name
	w := &writer{ctx: ctx, db: s.db, label: label, name: name, chunk: make([]byte, 0, chunkSize)}
	return w, s.db.Write(ctx, label, func(ctx context.Context, tx *db.Tx) (err error) {
		w.content, err = db.Value[int64](ctx, tx, label, insert, tx.Now().Add(grace))
		return err
	})
}

// Write appends b to the chunk and saves the chunk when it is full.
func (w *writer) Write(b []byte) (n int, err error) {
	for len(b) > 0 && w.err == nil {
		count := min(chunkSize-len(w.chunk), len(b))
		w.chunk = append(w.chunk, b[:count]...)
		b, n = b[count:], n+count
		if len(w.chunk) == chunkSize {
			w.err = w.flush()
		}
	}
	return n, w.err
}

func (w *writer) flush() error {
	if w.err != nil || len(w.chunk) == 0 {
		return w.err
	}
	const insert = `
		INSERT INTO file_chunk (content, idx, bytes)
		VALUES ($1, $2, $3)
		ON CONFLICT (content, idx) DO NOTHING`
	err := w.db.Write(w.ctx, w.label, func(ctx context.Context, tx *db.Tx) error {
		return tx.RunAll(ctx, w.label, w.renew(tx, tx.Now().Add(grace)), db.Do(insert, w.content, w.index, w.chunk))
	})
	if err != nil {
		return err
	}
	w.index, w.size, w.chunk = w.index+1, w.size+int64(len(w.chunk)), w.chunk[:0]
	return nil
}

// renew returns the statement that sets the time at which the content expires and locks the content
// against the sweep. It fails if the content has expired, because the sweep may have deleted a part.
// The zero time means never.
func (w *writer) renew(tx *db.Tx, expires time.Time) db.Statement {
	const statement = `
		UPDATE file_content
		SET expires = $1
		WHERE id = $2
		  AND expires > $3`
	expired := relay.Errorf(relay.KindUnavailable, "%s: nothing was written for %s, and the incomplete file was deleted", w.label, grace)
	return db.Do(statement, expires, w.content, tx.Now()).Or(expired)
}

// commit replaces the content of the file by the written content. The old content is kept for grace,
// for its readers.
func (w *writer) commit(ttl time.Duration) error {
	const (
		create = `
			INSERT INTO file (name, content, size, expires)
			VALUES ($1, 0, 0, 1)
			ON CONFLICT (name) DO NOTHING`
		lock = `
			SELECT content
			FROM file
			WHERE name = $1
			{for update}`
		replace = `
			UPDATE file
			SET content = $2, size = $3, expires = $4
			WHERE name = $1`
	)
	return w.db.Write(w.ctx, w.label, func(ctx context.Context, tx *db.Tx) error {
		var expires, contentExpires time.Time
		if ttl > 0 {
			expires = tx.Now().Add(ttl)
			contentExpires = expires.Add(grace)
		}
		if err := tx.Run(ctx, w.label, create, w.name); err != nil {
			return err
		}
		oldContent, err := db.Value[int64](ctx, tx, w.label, lock, w.name)
		if err != nil {
			return err
		}
		return tx.RunAll(ctx, w.label,
			db.Do(replace, w.name, w.content, w.size, expires),
			w.renew(tx, contentExpires),
			db.Do(expireContent, tx.Now().Add(grace), oldContent))
	})
}
