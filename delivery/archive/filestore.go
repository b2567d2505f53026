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

// FileStore is a folder of exported files, which expire after a time.
type FileStore struct {
	files   Files
	folder  string
	life    time.Duration
	exports *Exports
}

// NewFileStore returns a folder whose files are kept for life; up to atOnce are
// written at a time, 0 means 2.
func NewFileStore(files Files, folder string, life time.Duration, atOnce int) *FileStore {
	return &FileStore{files: files, folder: folder, life: life, exports: NewExports(atOnce)}
}

// Close cancels the running exports.
func (s *FileStore) Close() error { return s.exports.Close() }

// Make writes a file with fill, or waits for the running export of that name, and
// returns how many records fill counted. An existing file is written again. If ctx
// ends first, the export continues, see Exports.Do.
func (s *FileStore) Make(ctx context.Context, name string, fill func(ctx context.Context, to io.Writer) (int64, error)) (int64, error) {
	return s.exports.Do(ctx, name, func(ctx context.Context) (records int64, err error) {
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

func (s *FileStore) path(name string) string { return s.folder + "/" + name }

// Open opens a file that was made, on this gateway or another, and returns its size
// in bytes; relay.KindNotFound if there is none.
func (s *FileStore) Open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	return s.files.Open(ctx, s.path(name))
}
