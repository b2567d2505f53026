package archive

import (
	"cmp"
	"context"
	"io"

	"github.com/penstock/penstock/relay/sip"
)

const whole = ".zip"

// Options are what may be chosen; the zero value works.
type Options struct {
	// AtOnce is how many archives are written at one time; 0 means 2.
	AtOnce int
	// Page is how many calls are read at one time; 0 means 2000.
	Page int
}

// Store makes and keeps archives of calls while their handles work; it is a
// sip.Archives.
type Store struct {
	*Shelf
	calls sip.Calls
	page  int
}

// Open opens the shelf of archives in a directory.
func Open(dir string, calls sip.Calls, o Options) (*Store, error) {
	shelf, err := OpenShelf(dir, whole, sip.Life, o.AtOnce)
	if err != nil {
		return nil, err
	}
	return &Store{Shelf: shelf, calls: calls, page: cmp.Or(o.Page, 2000)}, nil
}

// Make makes an archive, or waits for the one that is being made; see Shelf.Make.
func (s *Store) Make(ctx context.Context, o sip.Order) (int64, error) {
	return s.Shelf.Make(ctx, o.Handle, func(ctx context.Context, to io.Writer) (int64, error) { return s.fill(ctx, to, o) })
}
