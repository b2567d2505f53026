package archive

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/file"
)

// Exports runs exports that take longer than a request: an export continues when its
// caller gives up, and the next call with the export's name gets the result.
type Exports struct {
	slots   chan struct{}
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	byName map[string]*export // running exports, and results that no caller has received
}

type export struct {
	done  chan struct{}
	count int64 // set before done is closed
	err   error // set before done is closed
}

// maxRunning is the maximum number of concurrent exports.
const maxRunning = 2

// NewExports returns Exports without a running export.
func NewExports() *Exports {
	e := &Exports{slots: make(chan struct{}, maxRunning), byName: make(map[string]*export)}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e
}

// Close cancels the running exports and waits for their end.
func (e *Exports) Close() error {
	e.cancel()
	e.running.Wait()
	return nil
}

// Do runs an export, or waits for the running export of that name, and returns the number of
// its records. The error is relay.KindUnavailable if ctx ends first, and the export
// continues, or if Close cancelled the export.
func (e *Exports) Do(ctx context.Context, name string, run func(ctx context.Context) (int64, error)) (int64, error) {
	export := e.begin(name, run)
	select {
	case <-export.done:
		e.mu.Lock()
		if e.byName[name] == export {
			delete(e.byName, name)
		}
		e.mu.Unlock()
		return export.count, export.err
	case <-ctx.Done():
		return 0, relay.Errorf(relay.KindUnavailable, "archive %s is still being written: %w", name, ctx.Err())
	}
}

func (e *Exports) begin(name string, run func(ctx context.Context) (int64, error)) *export {
	e.mu.Lock()
	defer e.mu.Unlock()
	if running := e.byName[name]; running != nil {
		return running
	}
	started := &export{done: make(chan struct{})}
	e.byName[name] = started
	e.running.Go(func() {
		defer close(started.done)
		select {
		case e.slots <- struct{}{}:
			started.err = relay.Recovered("archive "+name, func() (err error) {
				started.count, err = run(e.ctx)
				return err
			})
			<-e.slots
		case <-e.ctx.Done():
		}
		if e.ctx.Err() != nil {
			started.err = relay.Errorf(relay.KindUnavailable, "archive %s: cancelled: %w", name, e.ctx.Err())
		}
	})
	return started
}

// FileStore is a folder of exported files, which expire after a time.
type FileStore struct {
	*Exports
	files     *file.Store
	folder    string
	retention time.Duration
}

// NewFileStore returns a folder whose files are stored for the retention.
func NewFileStore(files *file.Store, folder string, retention time.Duration) *FileStore {
	return &FileStore{Exports: NewExports(), files: files, folder: folder, retention: retention}
}

// Make writes a file with fill, or waits for the running export of that name, and returns the
// number of records that fill returned. An existing file is written again. If ctx ends first,
// the export continues, see Exports.Do.
func (f *FileStore) Make(ctx context.Context, name string, fill func(ctx context.Context, w io.Writer) (int64, error)) (int64, error) {
	return f.Do(ctx, name, func(ctx context.Context) (records int64, err error) {
		err = f.files.Write(ctx, f.path(name), f.retention, func(w io.Writer) (err error) {
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

// Open opens a file that this gateway or another one has written, and returns its size in
// bytes. It returns relay.KindNotFound if the file does not exist.
func (f *FileStore) Open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	return f.files.Open(ctx, f.path(name))
}
