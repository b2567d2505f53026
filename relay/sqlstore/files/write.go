package files

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/sqlstore"
)

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
	db      *sqlstore.DB
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
	content, err := sqlstore.Transact(ctx, s.db, noun, func(ctx context.Context, tx *sqlstore.Tx) (int64, error) {
		return sqlstore.Value[int64](ctx, tx, noun, `
INSERT INTO file_content (expires) VALUES ($1) RETURNING id`, tx.Now().Add(grace))
	})
	if err != nil {
		return nil, err
	}
	return &writer{ctx: ctx, db: s.db, noun: noun, name: name, content: content, chunk: make([]byte, 0, chunkSize)}, nil
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
	err := w.db.Write(w.ctx, w.noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		if err := w.renew(ctx, tx, tx.Now().Add(grace)); err != nil {
			return err
		}
		return tx.Run(ctx, w.noun, `
INSERT INTO file_chunk (content, idx, bytes) VALUES ($1, $2, $3) ON CONFLICT (content, idx) DO NOTHING`, w.content, w.next, w.chunk)
	})
	if err != nil {
		return err
	}
	w.next, w.size, w.chunk = w.next+1, w.size+int64(len(w.chunk)), w.chunk[:0]
	return nil
}

// renew sets when the content expires, unless the sweep may have some of it, and locks it
// against being swept. The zero
// time is never.
func (w *writer) renew(ctx context.Context, tx *sqlstore.Tx, expires time.Time) error {
	n, err := tx.Exec(ctx, w.noun, `
UPDATE file_content SET expires = $1 WHERE id = $2 AND expires > $3`, expires, w.content, tx.Now())
	if err == nil && n == 0 {
		err = relay.Errorf(relay.KindUnavailable, "%s: nothing was written for %s, and what had been was removed", w.noun, grace)
	}
	return err
}

// commit makes the content that of the file. The content that it replaces is kept
// for what reads it.
func (w *writer) commit(keep time.Duration) error {
	return w.db.Write(w.ctx, w.noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		var expires, gone time.Time
		if keep > 0 {
			expires = tx.Now().Add(keep)
			gone = expires.Add(grace)
		}
		if err := tx.Run(ctx, w.noun, `
INSERT INTO file (name, content, size, expires) VALUES ($1, 0, 0, 1) ON CONFLICT (name) DO NOTHING`, w.name); err != nil {
			return err
		}
		former, err := sqlstore.Value[int64](ctx, tx, w.noun, `
SELECT content FROM file WHERE name = $1 {for update}`, w.name)
		if err != nil {
			return err
		}
		if err := tx.Run(ctx, w.noun, `
UPDATE file SET content = $2, size = $3, expires = $4 WHERE name = $1`, w.name, w.content, w.size, expires); err != nil {
			return err
		}
		if err := w.renew(ctx, tx, gone); err != nil {
			return err
		}
		return tx.Run(ctx, w.noun, expireContent, tx.Now().Add(grace), former)
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
