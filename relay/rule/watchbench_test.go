package rule_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/rule"
)

// BenchmarkLeaseWatches leases 500 due watches of a million, and moves them.
func BenchmarkLeaseWatches(b *testing.B) {
	bench := func(b *testing.B, url string) {
		database := dbtest.Open(b, db.Options{URL: url})
		const watched, step, silent = 1_000_000, 10_000, 500
		for first := 0; first < watched; first += step {
			rows := db.NewBatch("account, device, due")
			for i := first; i < first+step; i++ {
				due := at(float64(1_000_000 + i))
				if i%(watched/silent) == 0 {
					due = at(1)
				}
				rows.Add(1, fmt.Sprintf("d%07d", i), due)
			}
			err := database.Write(b.Context(), "bench", func(ctx context.Context, tx *db.Tx) error {
				return tx.Run(ctx, "bench", "INSERT INTO rule_watch (account, device, due) SELECT account, device, due FROM batch", rows)
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		s := rule.NewStore(database)
		for b.Loop() {
			leased := at(500_000)
			due, err := s.LeaseWatches(b.Context(), at(2), leased, silent)
			if err != nil || len(due) != silent {
				b.Fatalf("%d devices, error %v", len(due), err)
			}
			for i := range due {
				due[i].Due = at(1)
			}
			if err := s.MoveWatches(b.Context(), leased, due); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("SQLite", func(b *testing.B) { bench(b, "") })
	b.Run("PostgreSQL", func(b *testing.B) { bench(b, dbtest.Shared(b).NewDatabase(b)) })
}
