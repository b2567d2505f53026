package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
)

// partial ends the name of a file that is being made.
const partial = ".part"

// Shelf is a directory of files that are made once, named after who asked for
// them, and removed after a time.
type Shelf struct {
	dir    string
	suffix string // of the names of whole files
	life   time.Duration
	works  *Works
}

// OpenShelf makes the directory and removes what was left half made. Files have
// the suffix and stay for life; atOnce are written at one time, 0 means 2.
func OpenShelf(dir, suffix string, life time.Duration, atOnce int) (*Shelf, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	s := &Shelf{dir: dir, suffix: suffix, life: life, works: NewWorks(atOnce)}
	_, err := s.remove(func(name string, _ fs.FileInfo) bool { return strings.HasSuffix(name, partial) })
	return s, err
}

// Close breaks off what is being made.
func (s *Shelf) Close() error { return s.works.Close() }

// Make makes a file of what fill writes, or waits for it if it is being made, and
// returns how many records fill counted. When ctx ends first the work goes on,
// see Works.Do.
func (s *Shelf) Make(ctx context.Context, name string, fill func(ctx context.Context, to io.Writer) (int64, error)) (int64, error) {
	return s.works.Do(ctx, name, func(ctx context.Context) (int64, error) { return s.write(ctx, name, fill) })
}

// write makes the file. One that is there is made again: it is the same, or has
// what arrived since.
func (s *Shelf) write(ctx context.Context, name string, fill func(context.Context, io.Writer) (int64, error)) (records int64, err error) {
	path := s.path(name)
	f, err := os.OpenFile(path+partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("archive %s: %w", name, err)
	}
	buffered := bufio.NewWriterSize(f, 256<<10)
	records, err = fill(ctx, buffered)
	err = errors.Join(err, buffered.Flush(), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+partial, path+s.suffix)
	}
	if err != nil {
		return 0, fmt.Errorf("archive %s: %w", name, errors.Join(err, os.Remove(path+partial)))
	}
	return records, syncDir(s.dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// path is that of a file without its suffix; names are letters, digits and dashes.
func (s *Shelf) path(name string) string { return filepath.Join(s.dir, filepath.Base(name)) }

// Open opens a file that was made, and tells its size in bytes;
// relay.KindNotFound if there is none.
func (s *Shelf) Open(name string) (io.ReadCloser, int64, error) {
	f, err := os.Open(s.path(name) + s.suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, relay.Errorf(relay.KindNotFound, "archive %s: there is none", name)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("archive %s: %w", name, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// Sweep removes files that are older than their life, and returns how many.
func (s *Shelf) Sweep(now time.Time) (int, error) {
	return s.remove(func(name string, info fs.FileInfo) bool {
		return strings.HasSuffix(name, s.suffix) && now.Sub(info.ModTime()) > s.life
	})
}

func (s *Shelf) remove(which func(name string, info fs.FileInfo) bool) (n int, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return 0, fmt.Errorf("archive: %w", err)
	}
	for _, e := range entries {
		info, bad := e.Info()
		if bad != nil || !which(e.Name(), info) {
			continue // it is gone already, or stays
		}
		if bad := os.Remove(filepath.Join(s.dir, e.Name())); bad != nil && !errors.Is(bad, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("archive: %w", bad))
			continue
		}
		n++
	}
	return n, err
}
