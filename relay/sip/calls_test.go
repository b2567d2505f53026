package sip

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestCalls(t *testing.T) {
	dbtest.OnEvery(t, func(t *testing.T, open func(t *testing.T) *db.DB) {
		t.Run("records are saved once and read in order", func(t *testing.T) { testRecordsAreSavedOnce(t, NewCalls(open(t))) })
		t.Run("without the database Put returns KindUnavailable", func(t *testing.T) { testClosedDatabase(t, NewCalls(open(t))) })
	})
}

func atSecond(seconds int) time.Time {
	return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
}

func call(acct relay.AccountID, key string, startSecond int) Record {
	return Record{Account: acct, Call: cdr.Call{Key: key, ID: key, Start: atSecond(startSecond), From: "1", To: "2"}}
}

func testRecordsAreSavedOnce(t *testing.T, s *Calls) {
	complete := Record{Account: 1, Call: cdr.Call{
		ID: "b", Key: "kb", Start: atSecond(5).Add(250 * time.Millisecond), Answer: atSecond(6), End: atSecond(9), Duration: 4, Billsec: 3,
		From: "447700900123", To: "=é\n\"", Disposition: "ANSWERED", Trunk: "t",
	}}
	changed := complete
	changed.Call.To = "changed"
	for _, batch := range [][]Record{{call(1, "z", 5), complete, call(2, "kb", 5)}, nil, {changed, call(1, "a", 10), call(1, "y", 5)}} {
		if err := s.Put(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	relaytest.Equal(t, "the stored calls", pages(t, s, 1), []cdr.Call{call(1, "y", 5).Call, call(1, "z", 5).Call, complete.Call})
}

// pages reads the calls of an account in pages of two.
func pages(t *testing.T, s *Calls, acct relay.AccountID) (calls []cdr.Call) {
	t.Helper()
	cursor := Cursor{}
	for {
		page, err := s.Read(t.Context(), acct, atSecond(5), atSecond(10), cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return calls
		}
		calls = append(calls, page...)
		cursor = Cursor{Start: page[len(page)-1].Start, Key: page[len(page)-1].Key}
	}
}

func testClosedDatabase(t *testing.T, s *Calls) {
	if err := s.db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), []Record{call(1, "a", 1)}); relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("Put to a closed database: %v, want kind unavailable", err)
	}
	if _, err := s.Read(t.Context(), 1, atSecond(0), atSecond(9), Cursor{}, 1); err == nil {
		t.Error("Read of a closed database returned no error")
	}
}

// TestTwoGateways saves the same calls from two gateways concurrently, in different orders.
func TestTwoGateways(t *testing.T) {
	gateways := dbtest.TwoGateways(t, NewCalls)
	dbtest.RunConcurrently(16, func(i int) {
		records := make([]Record, 200)
		for j := range records {
			n := (j*7 + i*13) % 200 // a different order for each i
			records[j] = call(1, fmt.Sprint(n), 5+n%5)
		}
		if err := gateways[i%2].Put(t.Context(), append(records, records[0])); err != nil {
			t.Error(err)
		}
	})
	if got := pages(t, gateways[0], 1); len(got) != 200 {
		t.Errorf("%d calls, want 200", len(got))
	}
}

func BenchmarkPut(b *testing.B) { dbtest.BenchEach(b, NewCalls, benchmarkPut) }

func benchmarkPut(b *testing.B, s *Calls) {
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		batch := make([]Record, 1000)
		for i := range batch {
			batch[i] = call(1, fmt.Sprintf("%x-%d", n*7919, i), n)
		}
		if err := s.Put(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "records/s")
}
