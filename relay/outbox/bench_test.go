package outbox

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
)

// inWorkers calls do with the numbers 0 to n-1 in four goroutines.
func inWorkers(n int, do func(i int)) {
	var wg sync.WaitGroup
	numbers := make(chan int)
	for range 4 {
		wg.Go(func() {
			for i := range numbers {
				do(i)
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	wg.Wait()
}

// smsDeliveries returns n deliveries of inbound messages.
func smsDeliveries(n int, now time.Time) []Delivery {
	ds := make([]Delivery, n)
	for i := range ds {
		ds[i] = inAccount(relay.AccountID(1+i%5), newDelivery(relay.NewID(now)))
		ds[i].CreatedAt, ds[i].MessageID = now, relay.NewID(now)
		ds[i].Originator, ds[i].Destination = "4915112345678", "41798070000"
		ds[i].Request.Body = []byte("from=4915112345678&to=41798070000&text=" + strings.Repeat("text ", 20))
	}
	return ds
}

// BenchmarkCreateFinish creates leased deliveries and records their delivery, in batches of
// 200 in four goroutines: two commits per batch.
func BenchmarkCreateFinish(b *testing.B) {
	dbtest.BenchEach(b, NewStore, createFinish)
}

func createFinish(b *testing.B, s *Store) {
	const size = 200
	ctx := context.Background()
	batches := max(1, b.N/size)
	b.ResetTimer()
	inWorkers(batches, func(int) {
		now := time.Now()
		ds := smsDeliveries(size, now)
		if _, err := s.Create(ctx, ds, now.Add(time.Minute)); err != nil {
			b.Error(err)
		}
		outcomes := make([]Outcome, size)
		for i, d := range ds {
			outcomes[i] = Outcome{
				ID: d.ID, Account: d.Account, State: Delivered, Endpoint: "e",
				Attempt: Attempt{At: time.Now(), Duration: time.Millisecond, Status: 200, Response: "ok"},
			}
		}
		if _, err := s.Finish(ctx, outcomes); err != nil {
			b.Error(err)
		}
	})
	b.ReportMetric(float64(batches*size)/b.Elapsed().Seconds(), "deliveries/s")
}

// BenchmarkSearch searches 100,000 dead deliveries for a text that none contains and for one
// that all contain.
func BenchmarkSearch(b *testing.B) {
	dbtest.BenchEach(b, NewStore, func(b *testing.B, s *Store) {
		const n, size = 100_000, 2000
		now := time.Now()
		for i := range n / size {
			ds := smsDeliveries(size, now.Add(time.Duration(i)*time.Second))
			createDead(b, s, ds, "answered 500 Internal Server Error")
		}
		for _, query := range []string{"nowhere", "internal", "éé"} {
			b.Run(query, func(b *testing.B) {
				for b.Loop() {
					if _, _, err := s.List(b.Context(), Filter{State: Dead, Query: query}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	})
}

// createDead creates dead deliveries.
func createDead(b *testing.B, s *Store, ds []Delivery, reason string) {
	b.Helper()
	if _, err := s.Create(b.Context(), ds, ds[0].CreatedAt.Add(time.Minute)); err != nil {
		b.Fatal(err)
	}
	outcomes := make([]Outcome, len(ds))
	for i, d := range ds {
		outcomes[i] = Outcome{ID: d.ID, Account: d.Account, State: Dead, Reason: reason, Attempt: Attempt{At: d.CreatedAt, Status: 500}}
	}
	if _, err := s.Finish(b.Context(), outcomes); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkParked lists the endpoints of 200,000 parked deliveries and counts the deliveries.
func BenchmarkParked(b *testing.B) {
	dbtest.BenchEach(b, NewStore, func(b *testing.B, s *Store) {
		const n, size = 200_000, 2000
		now := time.Now()
		for range n / size {
			ds, outcomes := smsDeliveries(size, now), make([]Outcome, size)
			for i, d := range ds {
				outcomes[i] = Outcome{ID: d.ID, Account: d.Account, State: Queued, Endpoint: d.EndpointKey(), ParkedUntil: now, Uncounted: true}
			}
			if _, err := s.Create(b.Context(), ds, now); err != nil {
				b.Fatal(err)
			}
			if _, err := s.Finish(b.Context(), outcomes); err != nil {
				b.Fatal(err)
			}
		}
		b.Run("list", func(b *testing.B) {
			for b.Loop() {
				if endpoints, err := s.ParkedEndpoints(b.Context()); err != nil || len(endpoints) != 5 {
					b.Fatalf("got %d endpoints, error %v; want 5", len(endpoints), err)
				}
			}
		})
		b.Run("count", func(b *testing.B) {
			for b.Loop() {
				if counts, err := s.CountParked(b.Context()); err != nil || len(counts) != 5 {
					b.Fatalf("got %d counts, error %v; want 5", len(counts), err)
				}
			}
		})
	})
}

// BenchmarkList searches 20,000 dead deliveries with eleven attempts each for the oldest one.
func BenchmarkList(b *testing.B) {
	dbtest.BenchEach(b, NewStore, func(b *testing.B, s *Store) {
		const n = 20000
		for start := 0; start < n; start += 1000 {
			var ds []Delivery
			var outcomes []Outcome
			for i := start; i < start+1000; i++ {
				d := inAccount(relay.AccountID(1+i%5), createdAt(newDelivery(fmt.Sprintf("%05d", i)), float64(i)))
				d.Request.Body = []byte(strings.Repeat("text ", 40))
				ds = append(ds, d)
				for a := range 11 {
					o := outcome(d, float64(a), Retrying)
					o.Attempt.Response = strings.Repeat("x", 500)
					if a == 10 {
						o.State = Dead
					}
					outcomes = append(outcomes, o)
				}
			}
			if _, err := s.Create(b.Context(), ds, timeAt(0)); err != nil {
				b.Fatal(err)
			}
			if _, err := s.Finish(b.Context(), outcomes); err != nil {
				b.Fatal(err)
			}
		}
		for b.Loop() {
			page, _, err := s.List(b.Context(), Filter{State: Dead, Query: "m-00000"})
			if err != nil || len(page) != 1 {
				b.Fatalf("got %d deliveries, error %v; want 1", len(page), err)
			}
		}
	})
}

// BenchmarkDue lists due deliveries among a million while none is due, and then 1,000 of
// those that are due.
func BenchmarkDue(b *testing.B) {
	dbtest.BenchEach(b, NewStore, func(b *testing.B, s *Store) {
		const n = 1_000_000
		for start := 0; start < n; start += 5000 {
			ds := make([]Delivery, 5000)
			for i := range ds {
				ds[i] = inAccount(relay.AccountID(1+i%10), createdAt(newDelivery(fmt.Sprintf("%07d", start+i)), float64(start+i)/1000))
			}
			if _, err := s.Create(b.Context(), ds, timeAt(float64(start+1))); err != nil {
				b.Fatal(err)
			}
		}
		for b.Loop() {
			if refs, err := s.Due(b.Context(), timeAt(0), 1000); err != nil || len(refs) != 0 {
				b.Fatalf("got %d due deliveries, error %v; want 0", len(refs), err)
			}
		}
		began := time.Now()
		if refs, err := s.Due(b.Context(), timeAt(5000), 1000); err != nil || len(refs) != 1000 {
			b.Fatalf("got %d due deliveries, error %v; want 1000", len(refs), err)
		}
		b.ReportMetric(float64(time.Since(began).Microseconds()), "µs/1000-due")
	})
}
