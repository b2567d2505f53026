package usage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/usage"
)

var (
	_ usage.Counters = (*Store)(nil)
	_ usage.Records  = (*Store)(nil)
	_ usage.Reports  = (*Store)(nil)
)

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func at(seconds int) time.Time {
	return time.Date(2026, 11, 20, 12, 0, 0, 123_456_000, time.UTC).Add(time.Duration(seconds) * time.Second)
}

func record(acct account.ID, id, iccid string, start int, bytes int64) usage.Record {
	return usage.Record{Account: acct, Use: cdr.Use{ID: id, ICCID: iccid, Start: at(start), Type: "data", Bytes: bytes, Duration: 7}}
}

func put(t *testing.T, s *Store, records ...usage.Record) {
	t.Helper()
	if err := s.Put(t.Context(), records); err != nil {
		t.Fatal(err)
	}
}

// all reads a time in pages of two.
func all(t *testing.T, s *Store, acct account.ID, iccid string, from, to int) (found []cdr.Use) {
	t.Helper()
	var behind usage.Place
	for {
		page, err := s.Read(t.Context(), acct, iccid, usage.Span{From: at(from), To: at(to)}, behind, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range page {
			found = append(found, k.Use)
		}
		if len(page) < 2 {
			return found
		}
		behind = page[1].Place
	}
}

func TestRecordsAreKeptOnceAndReadInOrder(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	odd := usage.Record{Account: 1, Use: cdr.Use{ID: "=é\n\"", ICCID: "B", Start: at(5), Type: "voice", Duration: 9}}
	changed := record(1, "b", "C", 6, 999)
	put(t, s, record(1, "a", "A", 9, 1), record(1, "b", "A", 5, 2), odd, record(2, "a", "A", 6, 4))
	put(t, s)
	put(t, s, changed, record(1, "c", "A", 4, 8), record(1, "d", "A", 10, 16), record(1, "e", "A", 5, 32))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	b, e, a := record(1, "b", "A", 5, 2).Use, record(1, "e", "A", 5, 32).Use, record(1, "a", "A", 9, 1).Use
	for _, tc := range []struct {
		name  string
		iccid string
		want  []cdr.Use
	}{
		{"all, by time and then by arrival", "", []cdr.Use{b, odd.Use, e, a}},
		{"those of a SIM", "A", []cdr.Use{b, e, a}},
		{"a record that came again says what it said first", "C", nil},
	} {
		if got := all(t, s, 1, tc.iccid, 5, 10); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got  %+v\nwant %+v", tc.name, got, tc.want)
		}
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestARecordAddsOnceToItsSIMAndPool(t *testing.T) {
	s := open(t, t.TempDir())
	december := record(1, "dec", "A", 15*86400, 1000)
	december.Pool = "p"
	inPool := record(1, "b", "A", 1, 20)
	inPool.Pool = "p"
	for range 2 {
		put(t, s, record(1, "a", "A", 0, 3), inPool, record(1, "c", "B", 0, 400), december, record(2, "a", "A", 0, 5))
		put(t, s, inPool)
	}
	subject := func(scope usage.Scope, id string, m usage.Month) usage.Subject {
		return usage.Subject{Scope: scope, ID: id, Month: m}
	}
	sim, pool := subject(usage.OfSIM, "A", 202611), subject(usage.OfPool, "p", 202611)
	for range 2 { // the second time changes nothing
		if err := s.Did(t.Context(), 1, pool, usage.Warned); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Did(t.Context(), 1, pool, usage.Reached); err != nil {
		t.Fatal(err)
	}
	got, err := s.Totals(t.Context(), 1, []usage.Subject{
		sim, pool, subject(usage.OfSIM, "B", 202611), subject(usage.OfSIM, "A", 202612), subject(usage.OfPool, "p", 202612), subject(usage.OfSIM, "p", 202611),
	})
	want := []usage.Total{{Bytes: 23}, {Bytes: 20, Done: usage.Warned | usage.Reached}, {Bytes: 400}, {Bytes: 1000}, {Bytes: 1000}, {}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	put(t, s, record(1, "z", "A", 0, 1)) // what was done stays
	if got, err := s.Totals(t.Context(), 1, []usage.Subject{sim}); err != nil || got[0].Bytes != 24 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAnySaysWhetherThereAreRecords(t *testing.T) {
	s := open(t, t.TempDir())
	put(t, s, record(1, "a", "A", 5, 1))
	for _, tc := range []struct {
		name     string
		acct     account.ID
		from, to int
		iccids   []string
		want     bool
	}{
		{"the time it starts", 1, 5, 6, nil, true},
		{"a time that ends when it starts", 1, 4, 5, nil, false},
		{"another account", 2, 0, 9, nil, false},
		{"its SIM among others", 1, 5, 6, []string{"B", "A"}, true},
		{"its SIM at another time", 1, 6, 9, []string{"A"}, false},
		{"another SIM", 1, 0, 9, []string{"B"}, false},
		{"no SIM at all", 1, 0, 9, []string{}, false},
	} {
		if got, err := s.Any(t.Context(), tc.acct, usage.Span{From: at(tc.from), To: at(tc.to)}, tc.iccids); err != nil || got != tc.want {
			t.Errorf("%s: %v, %v", tc.name, got, err)
		}
	}
}

func TestSumsAreThoseOfTheRecords(t *testing.T) {
	s := open(t, t.TempDir())
	random := rand.New(rand.NewPCG(1, 2))
	want := make(map[string]int64)
	var records []usage.Record
	for i := range 5000 {
		r := record(1, fmt.Sprint(i), fmt.Sprintf("%04d", random.IntN(1200)), random.IntN(1000), random.Int64N(1<<40))
		if start := r.Use.Start; !start.Before(at(100)) && start.Before(at(900)) {
			want[r.Use.ICCID] += r.Use.Bytes
		}
		records = append(records, r)
	}
	put(t, s, append(records, record(2, "x", "0001", 500, 1))...)
	got, last := make(map[string]int64), ""
	err := s.Sums(t.Context(), 1, usage.Span{From: at(100), To: at(900)}, func(sums []usage.Sum) error {
		for _, one := range sums {
			if one.ICCID <= last || len(sums) > piece {
				t.Errorf("%s after %s in a piece of %d", one.ICCID, last, len(sums))
			}
			got[one.ICCID], last = one.Bytes, one.ICCID
		}
		return nil
	})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%d sums, want %d, %v", len(got), len(want), err)
	}
	enough := errors.New("enough")
	if err := s.Sums(t.Context(), 1, usage.Span{From: at(100), To: at(900)}, func([]usage.Sum) error { return enough }); !errors.Is(err, enough) {
		t.Error(err)
	}
}

func TestReportsAreKeptForATime(t *testing.T) {
	s := open(t, t.TempDir())
	row := func(subscriber, iccid string, bytes int64) usage.Row {
		return usage.Row{ICCID: iccid, Subscriber: subscriber, Company: "of " + subscriber, Bytes: bytes}
	}
	fill := func(id string, when time.Time) {
		t.Helper()
		must(t, s.Begin(t.Context(), id, when))
		must(t, s.Add(t.Context(), id, []usage.Row{row("s2", "A", 1), row("", "C", 2)}))
		must(t, s.Add(t.Context(), id, []usage.Row{row("s1", "D", 3), row("s1", "B", 4)}))
	}
	fill("r1", at(0))
	fill("r1", at(0)) // the job ran twice
	fill("r2", at(10))
	rows, err := s.Rows(t.Context(), "r1", 0, 10)
	if want := []usage.Row{row("", "C", 2), row("s1", "B", 4), row("s1", "D", 3), row("s2", "A", 1)}; err != nil || !reflect.DeepEqual(rows, want) {
		t.Errorf("%+v, %v", rows, err)
	}
	if rows, err := s.Rows(t.Context(), "r1", 2, 1); err != nil || len(rows) != 1 || rows[0].ICCID != "D" {
		t.Errorf("%+v, %v", rows, err)
	}
	must(t, s.Sweep(t.Context(), at(5)))
	for id, want := range map[string]int{"r1": 0, "r2": 4, "r3": 0} {
		if rows, err := s.Rows(t.Context(), id, 0, 10); err != nil || len(rows) != want {
			t.Errorf("%s: %d rows, %v", id, len(rows), err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatCannotBeKeptComesAgain(t *testing.T) {
	s := open(t, t.TempDir())
	must(t, s.Close())
	ctx, subject := context.Background(), usage.Subject{Scope: usage.OfSIM, ID: "A", Month: 202611}
	_, totals := s.Totals(ctx, 1, []usage.Subject{subject})
	for name, err := range map[string]error{
		"put": s.Put(ctx, []usage.Record{record(1, "a", "A", 0, 1)}), "did": s.Did(ctx, 1, subject, usage.Warned), "totals": totals,
	} {
		if relay.KindOf(err) != relay.KindUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s.Check(ctx) == nil {
		t.Error("it works")
	}
}

func BenchmarkPut(b *testing.B) {
	s := open(b, b.TempDir())
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		batch := make([]usage.Record, 1000)
		for i := range batch {
			batch[i] = record(1, fmt.Sprintf("%x-%d", n*7919, i), fmt.Sprintf("89445000000000%05d", i*31%977), n, 1000)
		}
		if err := s.Put(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "records/s")
}

func TestATotalStaysANumber(t *testing.T) {
	s := open(t, t.TempDir())
	most := int64(1) << 62
	for i := range 4 {
		put(t, s, record(1, fmt.Sprint(i), "A", i, most))
	}
	got, err := s.Totals(t.Context(), 1, []usage.Subject{{Scope: usage.OfSIM, ID: "A", Month: 202611}})
	if err != nil || got[0].Bytes != most {
		t.Errorf("%+v, %v", got, err)
	}
}
