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
		t.Run("records are kept once and read in order", func(t *testing.T) { testRecordsAreKeptOnce(t, NewCalls(open(t))) })
		t.Run("what cannot be kept comes again", func(t *testing.T) { testWhatCannotBeKept(t, NewCalls(open(t))) })
	})
}

func at(seconds int) time.Time {
	return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
}

func call(acct relay.AccountID, key string, start int) Record {
	return Record{Account: acct, Call: cdr.Call{Key: key, ID: key, Start: at(start), From: "1", To: "2"}}
}

func testRecordsAreKeptOnce(t *testing.T, s *Calls) {
	whole := Record{Account: 1, Call: cdr.Call{
		ID: "b", Key: "kb", Start: at(5).Add(250 * time.Millisecond), Answer: at(6), End: at(9), Duration: 4, Billsec: 3,
		From: "447700900123", To: "=é\n\"", Disposition: "ANSWERED", Trunk: "t",
	}}
	other := whole
	other.Call.To = "changed"
	for _, batch := range [][]Record{{call(1, "z", 5), whole, call(2, "kb", 5)}, nil, {other, call(1, "a", 10), call(1, "y", 5)}} {
		if err := s.Put(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	relaytest.Equal(t, "the stored calls", pages(t, s, 1), []cdr.Call{call(1, "y", 5).Call, call(1, "z", 5).Call, whole.Call})
}

// pages reads the calls of an account in pages of two.
func pages(t *testing.T, s *Calls, acct relay.AccountID) (got []cdr.Call) {
	t.Helper()
	behind := Cursor{}
	for {
		page, err := s.Read(t.Context(), acct, at(5), at(10), behind, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return got
		}
		got = append(got, page...)
		behind = Cursor{Start: page[len(page)-1].Start, Key: page[len(page)-1].Key}
	}
}

func testWhatCannotBeKept(t *testing.T, s *Calls) {
	if err := s.db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), []Record{call(1, "a", 1)}); relay.KindOf(err) != relay.KindUnavailable {
		t.Error(err)
	}
	if _, err := s.Read(t.Context(), 1, at(0), at(9), Cursor{}, 1); err == nil {
		t.Error("read")
	}
}

// TestTwoGateways lets two gateways take the same calls at the same time, in
// another order.
func TestTwoGateways(t *testing.T) {
	gateways := dbtest.Two(t, NewCalls)
	dbtest.Together(16, func(i int) {
		records := make([]Record, 200)
		for j := range records {
			n := (j*7 + i*13) % 200 // another order each
			records[j] = call(1, fmt.Sprint(n), 5+n%5)
		}
		if err := gateways[i%2].Put(t.Context(), append(records, records[0])); err != nil {
			t.Error(err)
		}
	})
	if got := pages(t, gateways[0], 1); len(got) != 200 {
		t.Errorf("%d calls", len(got))
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
