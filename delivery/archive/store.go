package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/sip"
)

const (
	whole   = ".zip"
	partial = ".part"
)

// Options are what may be chosen; the zero value works.
type Options struct {
	// AtOnce is how many archives are written at one time; 0 means 2.
	AtOnce int
	// Page is how many calls are read at one time; 0 means 2000.
	Page int
}

// Store makes and keeps archives; it is a sip.Archives.
type Store struct {
	dir   string
	calls sip.Calls
	opts  Options
	slots chan struct{}

	life  context.Context // of the writing
	end   context.CancelFunc
	wait  sync.WaitGroup
	mu    sync.Mutex
	under map[string]*work // by handle
}

// work is an archive that is being made.
type work struct {
	done  chan struct{}
	calls int64 // valid once done is closed, as is err
	err   error
}

// Open makes the directory and removes what was left half made.
func Open(dir string, calls sip.Calls, o Options) (*Store, error) {
	o.AtOnce, o.Page = cmp.Or(o.AtOnce, 2), cmp.Or(o.Page, 2000)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	s := &Store{dir: dir, calls: calls, opts: o, slots: make(chan struct{}, o.AtOnce), under: make(map[string]*work)}
	s.life, s.end = context.WithCancel(context.Background())
	_, err := s.remove(func(name string, _ fs.FileInfo) bool { return strings.HasSuffix(name, partial) })
	return s, err
}

// Close breaks off what is being made.
func (s *Store) Close() error {
	s.end()
	s.wait.Wait()
	return nil
}

// Make makes an archive, or waits for the one that is being made. When ctx ends
// first the work goes on; the next call finds it.
func (s *Store) Make(ctx context.Context, o sip.Order) (int64, error) {
	w := s.begin(o)
	select {
	case <-w.done:
		s.mu.Lock()
		delete(s.under, o.Handle)
		s.mu.Unlock()
		return w.calls, w.err
	case <-ctx.Done():
		return 0, relay.Errorf(relay.KindUnavailable, "archive %s: is still being made: %w", o.Handle, ctx.Err())
	}
}

func (s *Store) begin(o sip.Order) *work {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.under[o.Handle]; w != nil {
		return w
	}
	w := &work{done: make(chan struct{})}
	s.under[o.Handle] = w
	s.wait.Go(func() {
		defer close(w.done)
		select {
		case s.slots <- struct{}{}:
			w.calls, w.err = s.write(s.life, o)
			<-s.slots
		case <-s.life.Done():
			w.err = s.life.Err()
		}
		if s.life.Err() != nil {
			w.err = relay.Errorf(relay.KindUnavailable, "archive %s: broken off: %w", o.Handle, s.life.Err())
		}
	})
	return w
}

// write makes the file. One that is there is made again: it is the same, or has
// what arrived since.
func (s *Store) write(ctx context.Context, o sip.Order) (calls int64, err error) {
	path := s.path(o.Handle)
	f, err := os.OpenFile(path+partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("archive %s: %w", o.Handle, err)
	}
	calls, err = s.fill(ctx, f, o)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+partial, path+whole)
	}
	if err != nil {
		return 0, fmt.Errorf("archive %s: %w", o.Handle, errors.Join(err, os.Remove(path+partial)))
	}
	return calls, syncDir(s.dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// path is that of an archive; handles are letters and digits.
func (s *Store) path(handle string) string { return filepath.Join(s.dir, filepath.Base(handle)) }

// Open opens an archive that was made, and tells its size in bytes;
// relay.KindNotFound if there is none.
func (s *Store) Open(handle string) (io.ReadCloser, int64, error) {
	f, err := os.Open(s.path(handle) + whole)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, relay.Errorf(relay.KindNotFound, "archive %s: there is none", handle)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("archive %s: %w", handle, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// Sweep removes archives that are older than a handle's life, and returns how
// many.
func (s *Store) Sweep(now time.Time) (int, error) {
	return s.remove(func(name string, info fs.FileInfo) bool {
		return strings.HasSuffix(name, whole) && now.Sub(info.ModTime()) > sip.Life
	})
}

func (s *Store) remove(which func(name string, info fs.FileInfo) bool) (n int, err error) {
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
