package archive

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Files keeps files for a time.
type Files interface {
	// Write makes a file of what fill writes, or replaces the one of the name, and
	// keeps it for a time from its end on. It can be opened when Write returns nil,
	// and not after fill has failed.
	Write(ctx context.Context, name string, keep time.Duration, fill func(to io.Writer) error) error
	// Open opens a file and returns its size in bytes; relay.KindNotFound if there
	// is none or it has expired. Reading goes on when ctx ends.
	Open(ctx context.Context, name string) (io.ReadCloser, int64, error)
}

// Shelf is a folder of files that are named after who asked for them and expire
// after a time.
type Shelf struct {
	files  Files
	folder string
	life   time.Duration
	works  *Works
}

// NewShelf returns a folder of files, which are kept for life; atOnce are written
// at one time, 0 means 2.
func NewShelf(files Files, folder string, life time.Duration, atOnce int) *Shelf {
	return &Shelf{files: files, folder: folder, life: life, works: NewWorks(atOnce)}
}

// Close breaks off what is being made.
func (s *Shelf) Close() error { return s.works.Close() }

// Make makes a file of what fill writes, or waits for it if it is being made, and
// returns how many records fill counted. One that is there is made again: it is the
// same, or has what arrived since. When ctx ends first the work goes on, see
// Works.Do.
func (s *Shelf) Make(ctx context.Context, name string, fill func(ctx context.Context, to io.Writer) (int64, error)) (int64, error) {
	return s.works.Do(ctx, name, func(ctx context.Context) (records int64, err error) {
		err = s.files.Write(ctx, s.path(name), s.life, func(to io.Writer) (err error) {
			records, err = fill(ctx, to)
			return err
		})
		if err != nil {
			return 0, fmt.Errorf("archive %s: %w", name, err)
		}
		return records, nil
	})
}

func (s *Shelf) path(name string) string { return s.folder + "/" + name }

// Open opens a file that was made, on this gateway or another, and returns its size
// in bytes; relay.KindNotFound if there is none.
func (s *Shelf) Open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	return s.files.Open(ctx, s.path(name))
}
