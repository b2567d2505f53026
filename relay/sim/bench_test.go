package sim

import (
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
)

// BenchmarkPage reads a page of 100 SIMs. Its allocations decide how often garbage collection
// delays requests.
func BenchmarkPage(b *testing.B) {
	b.Run("on SQLite", func(b *testing.B) { readPages(b, dbtest.Open(b, db.Options{})) })
	b.Run("on PostgreSQL", func(b *testing.B) {
		readPages(b, dbtest.Open(b, db.Options{URL: dbtest.Shared(b).NewDatabase(b)}))
	})
}

func readPages(b *testing.B, db *db.DB) {
	store := NewSIMs(db)
	if err := store.Declare(b.Context(), 1, newModel(1000).sims, false); err != nil {
		b.Fatal(err)
	}
	q := Query{Page: relay.Page{Number: 5, PerPage: 100}}
	b.ReportAllocs()
	for b.Loop() {
		if sims, total, err := store.List(b.Context(), 1, Scope{}, q); err != nil || len(sims) != 100 || total != 1000 {
			b.Fatalf("got %d SIMs of %d, error %v; want 100 of 1000", len(sims), total, err)
		}
	}
}
