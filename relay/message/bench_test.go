package message

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
)

// benchWorkers is the number of concurrent goroutines. Each uses an account of its own.
const benchWorkers = 4

func benchStore(b *testing.B, url string) *Store {
	b.Helper()
	database := dbtest.Open(b, db.Options{URL: url})
	for acct := range benchWorkers {
		if err := credit.NewStore(database).Open(b.Context(), relay.AccountID(acct+1), 1<<40, timeAt(0)); err != nil {
			b.Fatal(err)
		}
	}
	return NewStore(database)
}

func benchEveryEngine(b *testing.B, bench func(b *testing.B, s *Store)) {
	b.Run("SQLite", func(b *testing.B) { bench(b, benchStore(b, "")) })
	b.Run("PostgreSQL", func(b *testing.B) { bench(b, benchStore(b, dbtest.Shared(b).NewDatabase(b))) })
}

// inParallel calls work n times, in benchWorkers goroutines.
func inParallel(b *testing.B, n int, work func(ctx context.Context, acct relay.AccountID, i int) error) {
	b.Helper()
	var nextIndex atomic.Int64
	dbtest.RunConcurrently(benchWorkers, func(acct int) {
		for i := int(nextIndex.Add(1)); i <= n; i = int(nextIndex.Add(1)) {
			if err := work(b.Context(), relay.AccountID(acct+1), i-1); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func saveBatch(ctx context.Context, s *Store, acct relay.AccountID, n int) ([]Message, error) {
	firstID, err := s.Reserve(ctx, n)
	if err != nil {
		return nil, err
	}
	ms := make([]Message, n)
	for i := range ms {
		m := newMessage(acct, firstID+ID(i), 1)
		m.Parts[0].UDH, m.Destination = nil, fmt.Sprintf("4477%08d", int64(m.ID)*7919%100_000_000)
		m.Parts[0].Text = "Your parcel 4711 arrives today between 12:00 and 14:00. Track it at https://example.com/t/4711"
		m.Parts[0].Data, m.Report.URL = []byte(m.Parts[0].Text), "https://example.com/dlr?id=%msgid&code=%code"
		ms[i] = m
	}
	_, err = s.Save(ctx, OrderRecords{Account: acct, Messages: ms, Now: timeAt(0), Lease: timeAt(60)})
	return ms, err
}

// One operation is a batch of 100 messages of one part.
func BenchmarkSave(b *testing.B) {
	benchEveryEngine(b, func(b *testing.B, s *Store) {
		const size = 100
		b.ReportAllocs()
		b.ResetTimer()
		inParallel(b, b.N, func(ctx context.Context, acct relay.AccountID, _ int) error {
			_, err := saveBatch(ctx, s, acct, size)
			return err
		})
		b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "messages/s")
	})
}

// One operation is an order of 10 messages. One account sends 64 orders at a time.
func BenchmarkSaveOfOneAccount(b *testing.B) {
	benchEveryEngine(b, func(b *testing.B, s *Store) {
		const size, workers = 10, 64
		var started atomic.Int64
		var running sync.WaitGroup
		b.ResetTimer()
		for range workers {
			running.Go(func() {
				for started.Add(1) <= int64(b.N) {
					if _, err := saveBatch(b.Context(), s, 1, size); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		running.Wait()
		b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "messages/s")
	})
}

// One operation is the submission and the acceptance of a batch of 200 messages of one
// part.
func BenchmarkBeginSettle(b *testing.B) {
	benchEveryEngine(b, func(b *testing.B, s *Store) {
		const size = 200
		batches := make([][]Message, b.N)
		inParallel(b, b.N, func(ctx context.Context, acct relay.AccountID, i int) (err error) {
			batches[i], err = saveBatch(ctx, s, acct, size)
			return err
		})
		b.ReportAllocs()
		b.ResetTimer()
		inParallel(b, b.N, func(ctx context.Context, _ relay.AccountID, i int) error { return submitBatch(ctx, s, batches[i]) })
		b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "messages/s")
	})
}

// One operation is a batch of 200 messages of one part, from the order to the acceptance.
func BenchmarkSend(b *testing.B) {
	benchEveryEngine(b, func(b *testing.B, s *Store) {
		const size = 200
		b.ResetTimer()
		inParallel(b, b.N, func(ctx context.Context, acct relay.AccountID, _ int) error {
			ms, err := saveBatch(ctx, s, acct, size)
			if err == nil {
				err = submitBatch(ctx, s, ms)
			}
			return err
		})
		b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "messages/s")
	})
}

func submitBatch(ctx context.Context, s *Store, ms []Message) error {
	if err := markSendingBatch(ctx, s, ms); err != nil {
		return err
	}
	return settleBatch(ctx, s, ms)
}

func markSendingBatch(ctx context.Context, s *Store, ms []Message) error {
	sendingParts := make([]SendingParts, len(ms))
	for i, m := range ms {
		sendingParts[i] = sendingPartsOf(m, "carrier", 1, false)
	}
	_, err := s.MarkSending(ctx, sendingParts)
	return err
}

func settleBatch(ctx context.Context, s *Store, ms []Message) error {
	outcomes := make([]Outcome, len(ms))
	for i, m := range ms {
		outcomes[i] = Outcome{
			PartRef: PartRef{Ref: m.Ref()}, State: Accepted, Carrier: "carrier", CarrierID: fmt.Sprintf("%032x", int64(m.ID)), At: timeAt(2),
		}
	}
	_, err := s.Settle(ctx, outcomes)
	return err
}

// listMessages is the number of saved messages in BenchmarkList.
const listMessages = 200_000

// One operation is a page of 50 messages.
func BenchmarkList(b *testing.B) {
	benchEveryEngine(b, func(b *testing.B, s *Store) {
		saveMany(b, s)
		for name, filter := range map[string]Filter{
			"all":                     {},
			"far back":                {Before: 1000},
			"accepted":                {State: Accepted},
			"pending":                 {State: Pending},
			"rejected (few)":          {State: Rejected},
			"removed (none)":          {State: Removed},
			"originator":              {Number: "Shop"},
			"destination":             {Number: "447700007919"},
			"number without messages": {Number: "none"},
			"destination accepted":    {Number: "447700007919", State: Accepted},
			"originator rejected":     {Number: "Shop", State: Rejected},
		} {
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					filter.Account, filter.Limit = 1, 50
					if _, _, err := s.List(b.Context(), filter); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		for name, offset := range map[string]int{"pending entries": 0, "pending entries far behind": listMessages / 40} {
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					if _, _, err := s.Pending(b.Context(), 1, offset, 50); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run("lease none due", func(b *testing.B) {
			for b.Loop() {
				if _, err := s.LeaseDue(b.Context(), timeAt(0), timeAt(1), 500); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("lease 500", func(b *testing.B) {
			i := 0
			for b.Loop() {
				i++
				now := timeAt(100).Add(time.Duration(i) * time.Millisecond)
				if ms, err := s.LeaseDue(b.Context(), now, now.Add(time.Microsecond), 500); err != nil || len(ms) != 500 {
					b.Fatal(len(ms), err)
				}
			}
		})
	})
}

// saveMany saves listMessages messages of account 1: most are accepted, some pending and a
// few rejected.
func saveMany(b *testing.B, s *Store) {
	b.Helper()
	const size = 1000
	if err := credit.NewStore(s.db).Open(b.Context(), 1, 1<<40, timeAt(0)); err != nil {
		b.Fatal(err)
	}
	inParallel(b, listMessages/size, func(ctx context.Context, _ relay.AccountID, i int) error {
		ms, err := saveBatch(ctx, s, 1, size)
		if err != nil || i%20 == 0 {
			return err
		}
		if err := submitBatch(ctx, s, ms); err != nil || i%100 > 1 {
			return err
		}
		_, err = s.Settle(ctx, []Outcome{{PartRef: PartRef{Ref: ms[0].Ref()}, State: Rejected, At: timeAt(3)}})
		return err
	})
}
