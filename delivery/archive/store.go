package archive

import (
	"cmp"
	"context"
	"io"

	"github.com/penstock/penstock/relay/sip"
)

// folder is that of archives.
const folder = "archives"

// Options are optional settings; the zero value works.
type Options struct {
	// AtOnce is how many archives are written at one time; 0 means 2.
	AtOnce int
	// Page is how many calls are read at one time; 0 means 2000.
	Page int
}

// Store makes archives of calls, which are kept while their handles work; it is a
// sip.Archives.
type Store struct {
	*FileStore
	calls sip.Calls
	page  int
}

// New returns a store of archives.
func New(files Files, calls sip.Calls, o Options) *Store {
	return &Store{FileStore: NewFileStore(files, folder, sip.Life, o.AtOnce), calls: calls, page: cmp.Or(o.Page, 2000)}
}

// Make makes an archive, or waits for the one that is being made; see FileStore.Make.
func (s *Store) Make(ctx context.Context, o sip.Order) (int64, error) {
	return s.FileStore.Make(ctx, o.Handle, func(ctx context.Context, to io.Writer) (int64, error) { return s.fill(ctx, to, o) })
}
