package archive

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/penstock/penstock/relay/file"
)

// FileStore is a folder of exported files, which expire after a time.
type FileStore struct {
	*Exports
	files  *file.Store
	folder string
	life   time.Duration
}

// NewFileStore returns a folder whose files are kept for life; up to atOnce are
// written at a time, 0 means 2.
func NewFileStore(files *file.Store, folder string, life time.Duration, atOnce int) *FileStore {
	return &FileStore{Exports: NewExports(atOnce), files: files, folder: folder, life: life}
}

// Make writes a file with fill, or waits for the running export of that name, and
// returns how many records fill counted. An existing file is written again. If ctx
// ends first, the export continues, see Exports.Do.
func (f *FileStore) Make(ctx context.Context, name string, fill func(ctx context.Context, w io.Writer) (int64, error)) (int64, error) {
	return f.Do(ctx, name, func(ctx context.Context) (records int64, err error) {
		err = f.files.Write(ctx, f.path(name), f.life, func(w io.Writer) (err error) {
			records, err = fill(ctx, w)
			return err
		})
		if err != nil {
			return 0, fmt.Errorf("archive %s: %w", name, err)
		}
		return records, nil
	})
}

func (f *FileStore) path(name string) string { return f.folder + "/" + name }

// Open opens a file that was made, on this gateway or another, and returns its size
// in bytes; relay.KindNotFound if there is none.
func (f *FileStore) Open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	return f.files.Open(ctx, f.path(name))
}
