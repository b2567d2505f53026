package archive

import (
	"archive/zip"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"time"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/file"
	"github.com/penstock/penstock/relay/sip"
)

// folder is the folder of archives.
const folder = "archives"

// Calls reads records of calls; sip.Calls implements it. It is an interface so that tests
// can read millions of calls and block in the middle.
type Calls interface {
	// Read returns at most limit calls that begin at or after start and before end, in the
	// order of their starts, beginning after the cursor. The zero cursor begins at the first.
	Read(ctx context.Context, acct relay.AccountID, start, end time.Time, cursor sip.Cursor, limit int) ([]cdr.Call, error)
}

// Store writes archives of calls, which are stored as long as their handles are valid. It
// implements sip.Archives.
type Store struct {
	*FileStore
	calls    Calls
	pageSize int // calls that are read at a time
}

// New returns a store of archives.
func New(files *file.Store, calls Calls) *Store {
	return &Store{FileStore: NewFileStore(files, folder, sip.HandleLifetime), calls: calls, pageSize: 2000}
}

// Make writes an archive, or waits for its running export, see FileStore.Make.
func (s *Store) Make(ctx context.Context, o sip.Order) (int64, error) {
	return s.FileStore.Make(ctx, o.Handle, func(ctx context.Context, w io.Writer) (int64, error) { return s.fill(ctx, w, o) })
}

// filler writes the files of an archive, one after the other.
type filler struct {
	order    sip.Order
	zip      *zip.Writer
	fileName string // of the current file
	csv      *csv.Writer
	calls    int64 // written
}

// fill writes an archive. Calls are ordered by their start, so that each day's file is
// complete before the next begins.
func (s *Store) fill(ctx context.Context, w io.Writer, o sip.Order) (int64, error) {
	f := &filler{order: o, zip: zip.NewWriter(w)}
	err := f.writeAll(ctx, s.calls, s.pageSize)
	if err == nil && f.csv == nil {
		err = f.begin(o.FirstFile()) // without calls, the archive has a file with only the header
	}
	err = errors.Join(err, f.flush(), f.zip.Close())
	return f.calls, err
}

func (f *filler) writeAll(ctx context.Context, source Calls, pageSize int) error {
	var cursor sip.Cursor
	for {
		calls, err := source.Read(ctx, f.order.Account, f.order.From, f.order.To, cursor, pageSize)
		if err != nil || len(calls) == 0 {
			return err
		}
		for _, c := range calls {
			if name := f.order.File(c); name != f.fileName {
				if err := f.begin(name); err != nil {
					return err
				}
			}
			f.calls++
			if err := f.csv.Write(sip.Row(c)); err != nil {
				return err
			}
		}
		lastCall := calls[len(calls)-1]
		cursor = sip.Cursor{Start: lastCall.Start, Key: lastCall.Key}
	}
}

func (f *filler) begin(name string) error {
	if err := f.flush(); err != nil {
		return err
	}
	w, err := f.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: f.order.RequestedAt})
	if err != nil {
		return err
	}
	f.fileName, f.csv = name, csv.NewWriter(w)
	return f.csv.Write(sip.Header())
}

func (f *filler) flush() error {
	if f.csv == nil {
		return nil
	}
	f.csv.Flush()
	return f.csv.Error()
}
