package archive

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/file"
)

// Exports runs exports that take longer than a request: an export continues when its
// caller gives up, and the next call with its name gets the result.
type Exports struct {
	slots chan struct{}
	life  context.Context
	end   context.CancelFunc
	wait  sync.WaitGroup
	mu    sync.Mutex
	under map[string]*export // by name
}

// export is a running export.
type export struct {
	done  chan struct{}
	count int64 // valid once done is closed, as is err
	err   error
}

// NewExports returns Exports that run up to atOnce exports at a time; 0 means 2.
func NewExports(atOnce int) *Exports {
	e := &Exports{slots: make(chan struct{}, cmp.Or(atOnce, 2)), under: make(map[string]*export)}
	e.life, e.end = context.WithCancel(context.Background())
	return e
}

// Close cancels the running exports and waits for their end.
func (e *Exports) Close() error {
	e.end()
	e.wait.Wait()
	return nil
}

// Do runs an export, or waits for the running one of that name, and returns how many
// records it counted. If ctx ends first, the export continues and the error is
// relay.KindUnavailable, as it is for an export that Close cancelled.
func (e *Exports) Do(ctx context.Context, name string, do func(ctx context.Context) (int64, error)) (int64, error) {
	export := e.begin(name, do)
	select {
	case <-export.done:
		e.mu.Lock()
		if e.under[name] == export {
			delete(e.under, name)
		}
		e.mu.Unlock()
		return export.count, export.err
	case <-ctx.Done():
		return 0, relay.Errorf(relay.KindUnavailable, "archive %s: is still being made: %w", name, ctx.Err())
	}
}

func (e *Exports) begin(name string, do func(ctx context.Context) (int64, error)) *export {
	e.mu.Lock()
	defer e.mu.Unlock()
	if running := e.under[name]; running != nil {
		return running
	}
	started := &export{done: make(chan struct{})}
	e.under[name] = started
	e.wait.Go(func() {
		defer close(started.done)
		select {
		case e.slots <- struct{}{}:
			started.err = relay.Recovered("archive "+name, func() (err error) {
				started.count, err = do(e.life)
				return err
			})
			<-e.slots
		case <-e.life.Done():
			started.err = e.life.Err()
		}
		if e.life.Err() != nil {
			started.err = relay.Errorf(relay.KindUnavailable, "archive %s: broken off: %w", name, e.life.Err())
		}
	})
	return started
}

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
