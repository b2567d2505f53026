package rule_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/rule"
)

// BenchmarkLeaseWatches leases the 500 due ones of a million watches and moves them.
func BenchmarkLeaseWatches(b *testing.B) {
	bench := func(b *testing.B, url string) {
		database := dbtest.Open(b, db.Options{URL: url})
		const watched, step, silent = 1_000_000, 10_000, 500
		for start := 0; start < watched; start += step {
			rows := db.NewBatch("account, device, due")
			for i := start; i < start+step; i++ {
				due := atSecond(float64(1_000_000 + i))
				if i%(watched/silent) == 0 {
					due = atSecond(1)
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
			leasedUntil := atSecond(500_000)
			due, err := s.LeaseWatches(b.Context(), atSecond(2), leasedUntil, silent)
			if err != nil || len(due) != silent {
				b.Fatalf("%d devices, error %v", len(due), err)
			}
			for i := range due {
				due[i].Due = atSecond(1)
			}
			if err := s.RescheduleWatches(b.Context(), leasedUntil, due); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("SQLite", func(b *testing.B) { bench(b, "") })
	b.Run("PostgreSQL", func(b *testing.B) { bench(b, dbtest.Shared(b).NewDatabase(b)) })
}
