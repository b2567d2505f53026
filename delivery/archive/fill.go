package archive

import (
	"archive/zip"
	"context"
	"encoding/csv"
	"errors"
	"io"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/relay/sip"
)

// filler writes calls into the files of a zip, one after another.
type filler struct {
	order sip.Order
	zip   *zip.Writer
	file  string
	csv   *csv.Writer
	calls int64
}

// fill writes an archive. Calls come in the order of their starts, so that each
// day's file is ended before the next is begun.
func (s *Store) fill(ctx context.Context, to io.Writer, o sip.Order) (int64, error) {
	f := &filler{order: o, zip: zip.NewWriter(to)}
	err := f.all(ctx, s.calls, s.page)
	if err == nil && f.csv == nil {
		err = f.begin(o.FirstFile()) // no calls: a file that says so
	}
	err = errors.Join(err, f.flush(), f.zip.Close())
	return f.calls, err
}

func (f *filler) all(ctx context.Context, from sip.Calls, page int) error {
	var behind sip.Cursor
	for {
		calls, err := from.Read(ctx, f.order.Account, f.order.From, f.order.To, behind, page)
		if err != nil || len(calls) == 0 {
			return err
		}
		for _, c := range calls {
			if err := f.add(c); err != nil {
				return err
			}
		}
		last := calls[len(calls)-1]
		behind = sip.Cursor{Start: last.Start, Key: last.Key}
	}
}

func (f *filler) add(c cdr.Call) error {
	if name := f.order.File(c); name != f.file {
		if err := f.begin(name); err != nil {
			return err
		}
	}
	f.calls++
	return f.csv.Write(sip.Row(c))
}

// begin begins a file.
func (f *filler) begin(name string) error {
	if err := f.flush(); err != nil {
		return err
	}
	w, err := f.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: f.order.AskedAt})
	if err != nil {
		return err
	}
	f.file, f.csv = name, csv.NewWriter(w)
	return f.csv.Write(sip.Header())
}

func (f *filler) flush() error {
	if f.csv == nil {
		return nil
	}
	f.csv.Flush()
	return f.csv.Error()
}
