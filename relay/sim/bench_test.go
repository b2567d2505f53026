package sim

import (
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
)

// BenchmarkPage reads a page of 100 SIMs. What it leaves behind decides how often
// a request meets the collector of garbage.
func BenchmarkPage(b *testing.B) {
	b.Run("on SQLite", func(b *testing.B) { readPages(b, dbtest.Open(b, db.Options{})) })
	b.Run("on PostgreSQL", func(b *testing.B) {
		readPages(b, dbtest.Open(b, db.Options{URL: dbtest.Shared(b).NewDatabase(b)}))
	})
}

func readPages(b *testing.B, db *db.DB) {
	s := NewSIMs(db)
	if err := s.Declare(b.Context(), 1, newModel(1000).sims, false); err != nil {
		b.Fatal(err)
	}
	q := Query{Page: relay.Page{Number: 5, PerPage: 100}}
	b.ReportAllocs()
	for b.Loop() {
		if found, total, err := s.List(b.Context(), 1, Scope{}, q); err != nil || len(found) != 100 || total != 1000 {
			b.Fatal(len(found), total, err)
		}
	}
}
