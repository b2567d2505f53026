package inbound

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
)

// BenchmarkParts joins 200 messages of two parts in each round: a batch of first parts and a
// batch of second parts are added, then the messages are ended.
func BenchmarkParts(b *testing.B) {
	b.Run("on SQLite", func(b *testing.B) { benchmarkParts(b, dbtest.Open(b, db.Options{})) })
	b.Run("on PostgreSQL", func(b *testing.B) {
		benchmarkParts(b, dbtest.Open(b, db.Options{URL: dbtest.Shared(b).NewDatabase(b)}))
	})
}

func benchmarkParts(b *testing.B, db *db.DB) {
	const n = 200
	s, times := NewStore(db), Times{Now: dbtest.TimeAt(0), Wait: 5 * time.Minute, Lease: time.Minute}
	text := strings.Repeat("é", 67)
	b.ReportAllocs()
	for round := 0; b.Loop(); round++ {
		for number := 1; number <= 2; number++ {
			batch, ended := make([]PartArrival, n), make([]ReassembledMessage, 0, n)
			for i := range batch {
				batch[i] = arrival(fmt.Sprintf("%016x%016x", i*0x9e3779b9, round), number, 2, fmt.Sprintf("n1-s%d.%d-%d", round, i, number), text)
			}
			added, err := s.Add(b.Context(), batch, times)
			for _, a := range added {
				if a.State == Completed {
					ended = append(ended, a.Group)
				}
			}
			if err != nil || len(ended) != n*(number-1) {
				b.Fatalf("part %d: completed messages = %d, error = %v", number, len(ended), err)
			}
			if err := s.End(b.Context(), ended); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(2*n*b.N)/b.Elapsed().Seconds(), "parts/s")
}
