package usage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sim"
)

func TestUsage(t *testing.T) {
	dbtest.Each(t, NewStore, map[string]func(*testing.T, *Store){
		"records are stored once and read in order":   testRecordsAreStoredOnce,
		"a record is added once to its SIM and pool":  testARecordIsAddedOnce,
		"Any reports whether there are records":       testAny,
		"Sums adds up the records of each SIM":        testSums,
		"IntervalSums adds up the records of a SIM":   testIntervalSums,
		"AccountUsages returns the usage of accounts": testAccountUsages,
		"a total does not overflow":                   testTotalsDoNotOverflow,
		"reports expire":                              testReportsExpire,
		"a closed database is unavailable":            testClosedDatabase,
		"pages and sums are read through indexes":     testIndexes,
	})
}

func atSecond(seconds int) time.Time {
	return time.Date(2026, 11, 20, 12, 0, 0, 123_456_000, time.UTC).Add(time.Duration(seconds) * time.Second)
}

func record(acct relay.AccountID, id, iccid string, start int, bytes int64) Record {
	return Record{Account: acct, Use: cdr.Use{ID: id, ICCID: iccid, Start: atSecond(start), Type: "data", Bytes: bytes, Duration: 7}}
}

func put(t *testing.T, s *Store, records ...Record) {
	t.Helper()
	if err := s.Put(t.Context(), records); err != nil {
		t.Fatal(err)
	}
}

func readUses(t *testing.T, s *Store, acct relay.AccountID, iccid sim.ICCID, first, last int) (uses []cdr.Use) {
	t.Helper()
	var cursor Cursor
	for {
		page, err := s.Read(t.Context(), acct, iccid, Span{From: atSecond(first), To: atSecond(last)}, cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range page {
			uses = append(uses, record.Use)
		}
		if len(page) < 2 {
			return uses
		}
		cursor = page[1].Cursor
	}
}

func testRecordsAreStoredOnce(t *testing.T, s *Store) {
	odd := Record{Account: 1, Use: cdr.Use{ID: "=é\n\"", ICCID: "B", Start: atSecond(5), Type: "voice", Duration: 9}}
	changed := record(1, "b", "C", 6, 999)
	put(t, s, record(1, "a", "A", 9, 1), record(1, "b", "A", 5, 2), odd, record(2, "a", "A", 6, 4))
	put(t, s)
	put(t, s, changed, record(1, "c", "A", 4, 8), record(1, "d", "A", 10, 16), record(1, "e", "A", 5, 32))
	b, e, a := record(1, "b", "A", 5, 2).Use, record(1, "e", "A", 5, 32).Use, record(1, "a", "A", 9, 1).Use
	for _, tc := range []struct {
		name  string
		iccid sim.ICCID
		want  []cdr.Use
	}{
		{"all, by start time and order of storage", "", []cdr.Use{odd.Use, b, e, a}},
		{"records of a SIM", "A", []cdr.Use{b, e, a}},
		{"a repeated record keeps its first values", "C", nil},
	} {
		relaytest.Equal(t, tc.name, readUses(t, s, 1, tc.iccid, 5, 10), tc.want)
	}
}

func testIntervalSums(t *testing.T, s *Store) {
	sms := Record{Account: 1, Use: cdr.Use{ID: "s", ICCID: "A", Start: atSecond(0), Type: "sms"}}
	put(t, s, record(1, "a", "A", 0, 1), record(1, "b", "A", 3599, 2), sms, record(1, "c", "A", 3600, 4), record(1, "d", "A", 86400, 8), record(1, "e", "B", 0, 16), record(2, "a", "A", 0, 32))
	hour := func(n int) time.Time { return time.Date(2026, 11, 20, 12+n, 0, 0, 0, time.UTC) }
	for _, tc := range []struct {
		name       string
		start, end time.Time
		interval   time.Duration
		want       []IntervalSum
	}{
		{"by hour", hour(0), hour(24), time.Hour, []IntervalSum{{Start: hour(0), Type: "data", Bytes: 3, Duration: 14, Records: 2}, {Start: hour(0), Type: "sms", Records: 1}, {Start: hour(1), Type: "data", Bytes: 4, Duration: 7, Records: 1}}},
		{"by day", hour(0), hour(48), 24 * time.Hour, []IntervalSum{{Start: hour(-12), Type: "data", Bytes: 7, Duration: 21, Records: 3}, {Start: hour(-12), Type: "sms", Records: 1}, {Start: hour(12), Type: "data", Bytes: 8, Duration: 7, Records: 1}}},
		{"without records", hour(48), hour(72), time.Hour, nil},
	} {
		got, err := s.IntervalSums(t.Context(), 1, "A", Span{From: tc.start, To: tc.end}, tc.interval)
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the sums "+tc.name, got, tc.want)
	}
}

func testARecordIsAddedOnce(t *testing.T, s *Store) {
	december := record(1, "dec", "A", 15*86400, 1000)
	december.Pool = "p"
	inPool := record(1, "b", "A", 1, 20)
	inPool.Pool = "p"
	for range 2 {
		put(t, s, record(1, "a", "A", 0, 3), inPool, record(1, "c", "B", 0, 400), december, record(2, "a", "A", 0, 5))
		put(t, s, inPool)
	}
	subject := func(scope Scope, id string, m Month) Subject {
		return Subject{Scope: scope, ID: id, Month: m}
	}
	simSubject, poolSubject := subject(OfSIM, "A", 202611), subject(OfPool, "p", 202611)
	for range 2 { // the second call changes nothing
		if err := s.AddSteps(t.Context(), 1, poolSubject, Warned); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AddSteps(t.Context(), 1, poolSubject, LimitReported); err != nil {
		t.Fatal(err)
	}
	got, err := s.Totals(t.Context(), 1, []Subject{
		simSubject, poolSubject, subject(OfSIM, "B", 202611), subject(OfSIM, "A", 202612), subject(OfPool, "p", 202612), subject(OfSIM, "p", 202611),
	})
	want := []Total{{Bytes: 23}, {Bytes: 20, Steps: Warned | LimitReported}, {Bytes: 400}, {Bytes: 1000}, {Bytes: 1000}, {}}
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the totals", got, want)
	for _, limitBytes := range []int64{20, 21} { // the pool has used 20 bytes
		relaytest.NoError(t, s.RemoveSteps(t.Context(), 1, poolSubject, LimitReported|Blocked, limitBytes))
		got, err := s.Totals(t.Context(), 1, []Subject{poolSubject})
		if err != nil || got[0].Steps.Has(LimitReported) != (limitBytes == 20) || !got[0].Steps.Has(Warned) || got[0].Bytes != 20 {
			t.Errorf("RemoveSteps with limit %d: totals %+v, error %v; want LimitReported only with limit 20", limitBytes, got, err)
		}
	}
	put(t, s, record(1, "z", "A", 0, 1)) // another record keeps the steps
	if got, err := s.Totals(t.Context(), 1, []Subject{simSubject}); err != nil {
		t.Error(err)
	} else {
		relaytest.Equal(t, "the bytes of the SIM", got[0].Bytes, 24)
	}
}

func testAccountUsages(t *testing.T, s *Store) {
	limited := func(iccid sim.ICCID, bytes int64) sim.SIM {
		return sim.SIM{ICCID: iccid, State: sim.Active, Limit: sim.Limit{Monthly: bytes}}
	}
	relaytest.NoError(t, sim.NewSIMs(s.db).Declare(t.Context(), 1, []sim.SIM{limited("A", 10), limited("B", 11), limited("C", 0)}, false))
	put(t, s, record(1, "a", "A", 0, 10), record(1, "b", "B", 0, 10), record(1, "c", "C", 0, 5), record(1, "d", "A", 15*86400, 99))
	got, err := s.AccountUsages(t.Context(), 202611)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the usage in November", got, []AccountUsage{{Account: 1, Bytes: 25, AtLimit: 1}})
}

func testAny(t *testing.T, s *Store) {
	sims := []sim.SIM{{ICCID: "A", State: sim.Active, Subscriber: "anna"}, {ICCID: "B", State: sim.Active, Subscriber: "ben"}}
	relaytest.NoError(t, sim.NewSIMs(s.db).Declare(t.Context(), 1, sims, false))
	put(t, s, record(1, "a", "A", 5, 1), record(1, "c", "C", 5, 1))
	for _, tc := range []struct {
		name       string
		acct       relay.AccountID
		start, end int
		subscriber string
		want       bool
	}{
		{"time that starts with the record", 1, 5, 6, "", true},
		{"time that ends at the start of the record", 1, 4, 5, "", false},
		{"another account", 2, 0, 9, "", false},
		{"SIM of the subscriber", 1, 5, 6, "anna", true},
		{"SIM of the subscriber at another time", 1, 6, 9, "anna", false},
		{"subscriber with a SIM without records", 1, 0, 9, "ben", false},
		{"subscriber without SIMs", 1, 0, 9, "carl", false},
		{"subscriber of another account", 2, 0, 9, "anna", false},
	} {
		if got, err := s.Any(t.Context(), tc.acct, Span{From: atSecond(tc.start), To: atSecond(tc.end)}, tc.subscriber); err != nil || got != tc.want {
			t.Errorf("%s: got %v, error %v; want %v", tc.name, got, err, tc.want)
		}
	}
}

func testSums(t *testing.T, s *Store) {
	random := rand.New(rand.NewPCG(1, 2))
	want := make(map[string]int64)
	var records []Record
	for i := range 5000 {
		r := record(1, fmt.Sprint(i), fmt.Sprintf("%04d", random.IntN(1200)), random.IntN(1000), random.Int64N(1<<40))
		if start := r.Use.Start; !start.Before(atSecond(100)) && start.Before(atSecond(900)) {
			want[r.Use.ICCID] += r.Use.Bytes
		}
		records = append(records, r)
	}
	put(t, s, append(records, record(2, "x", "0001", 500, 1))...)
	got, previous := make(map[string]int64), ""
	err := s.Sums(t.Context(), 1, Span{From: atSecond(100), To: atSecond(900)}, func(sums []Sum) error {
		for _, sum := range sums {
			if sum.ICCID <= previous || len(sums) > sumPage {
				t.Errorf("SIM %s follows %s in a page of %d sums, want ascending ICCIDs and at most %d sums", sum.ICCID, previous, len(sums), sumPage)
			}
			got[sum.ICCID], previous = sum.Bytes, sum.ICCID
		}
		return nil
	})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %d sums, error %v; want %d sums with the bytes of their records", len(got), err, len(want))
	}
	errStop := errors.New("stop")
	if err := s.Sums(t.Context(), 1, Span{From: atSecond(100), To: atSecond(900)}, func([]Sum) error { return errStop }); !errors.Is(err, errStop) {
		t.Errorf("got error %v, want %v", err, errStop)
	}
}

func testTotalsDoNotOverflow(t *testing.T, s *Store) {
	maxBytes := int64(1) << 62
	for i := range 4 {
		put(t, s, record(1, fmt.Sprint(i), "A", i, maxBytes))
	}
	got, err := s.Totals(t.Context(), 1, []Subject{{Scope: OfSIM, ID: "A", Month: 202611}})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the bytes of the SIM", got[0].Bytes, maxBytes)
}

func testReportsExpire(t *testing.T, s *Store) {
	row := func(subscriber, iccid string, bytes int64) Row {
		return Row{ICCID: iccid, Subscriber: subscriber, Company: "of " + subscriber, Bytes: bytes}
	}
	fill := func(id string, createdAt time.Time) {
		t.Helper()
		relaytest.NoError(t, s.Begin(t.Context(), id, createdAt))
		relaytest.NoError(t, s.Add(t.Context(), id, []Row{row("s2", "A", 1), row("", "C", 2)}))
		relaytest.NoError(t, s.Add(t.Context(), id, []Row{row("s1", "D", 3), row("s1", "B", 4)}))
	}
	fill("r1", atSecond(0))
	fill("r1", atSecond(0)) // a repeated job
	fill("r2", atSecond(10))
	rows, err := s.Rows(t.Context(), "r1", 0, 10)
	if want := []Row{row("", "C", 2), row("s1", "B", 4), row("s1", "D", 3), row("s2", "A", 1)}; err != nil || !reflect.DeepEqual(rows, want) {
		t.Errorf("rows = %+v, error %v; want %+v", rows, err, want)
	}
	if rows, err := s.Rows(t.Context(), "r1", 2, 1); err != nil {
		t.Error(err)
	} else if len(rows) != 1 {
		t.Errorf("got %d rows, want 1", len(rows))
	} else {
		relaytest.Equal(t, "the ICCID of the row", rows[0].ICCID, "D")
	}
	relaytest.NoError(t, s.Sweep(t.Context(), atSecond(5).Add(ReportLifetime)))
	for id, want := range map[string]int{"r1": 0, "r2": 4, "r3": 0} {
		if rows, err := s.Rows(t.Context(), id, 0, 10); err != nil || len(rows) != want {
			t.Errorf("report %s: %d rows, error %v; want %d", id, len(rows), err, want)
		}
	}
}

func testClosedDatabase(t *testing.T, s *Store) {
	relaytest.NoError(t, s.db.Close())
	ctx, subject := context.Background(), Subject{Scope: OfSIM, ID: "A", Month: 202611}
	_, totalsErr := s.Totals(ctx, 1, []Subject{subject})
	for name, err := range map[string]error{
		"put": s.Put(ctx, []Record{record(1, "a", "A", 0, 1)}), "add steps": s.AddSteps(ctx, 1, subject, Warned),
		"remove steps": s.RemoveSteps(ctx, 1, subject, Warned, 1), "totals": totalsErr,
	} {
		if relay.KindOf(err) != relay.KindUnavailable {
			t.Errorf("%s: error %v, want kind unavailable", name, err)
		}
	}
}

// testIndexes checks the query plans of SQLite, which has no statistics here.
func testIndexes(t *testing.T, s *Store) {
	if s.db.Engine() != "sqlite" {
		t.Skip("PostgreSQL scans small tables regardless of indexes; the same statements are checked on SQLite")
	}
	type step struct {
		id, parent, unused int
		detail             string
	}
	for _, tc := range []struct {
		query, index string
		args         []any
	}{
		{readAll, "usage_record_time (account=? AND started>? AND started<?)", []any{int64(1), int64(9), int64(0), int64(0), int64(2)}},
		{readSIM, "usage_record_sim (account=? AND iccid=? AND started>? AND started<?)", []any{int64(1), int64(9), int64(0), int64(0), int64(2), "A"}},
		{anyRecord, "usage_record_time (account=? AND started>? AND started<?)", []any{int64(1), int64(0), int64(9)}},
		{anyOfSubscriber, "usage_record_sim (account=? AND iccid=? AND started>? AND started<?)", []any{int64(1), int64(0), int64(9), "anna"}},
		{sumSIMs, "usage_record_sim (account=? AND iccid=? AND started>? AND started<?)", []any{int64(1), "", int64(1), int64(2), int64(3), int64(0), int64(9)}},
	} {
		plan, err := db.List(t.Context(), s.db, "plan", "EXPLAIN QUERY PLAN "+tc.query,
			func(v *step) []any { return []any{&v.id, &v.parent, &v.unused, &v.detail} }, tc.args...)
		if err != nil || !strings.Contains(fmt.Sprint(plan), tc.index) {
			t.Errorf("%s\nplan %+v, error %v; want index %s", tc.query, plan, err, tc.index)
		}
	}
}

// TestTwoGateways stores the same records through two gateways concurrently, in different orders.
func TestTwoGateways(t *testing.T) {
	gateways := dbtest.TwoGateways(t, NewStore)
	dbtest.RunConcurrently(16, func(i int) {
		for n := range 10 {
			records := make([]Record, 50)
			for j := range records {
				id := (j*7 + i*13) % 50 // a different order for each i
				records[j] = record(1, fmt.Sprint(n, "-", id), fmt.Sprint("sim", id%10), n, 1)
				records[j].Pool = fmt.Sprint("pool", id%3)
			}
			if err := gateways[i%2].Put(t.Context(), records); err != nil {
				t.Error(err)
			}
		}
	})
	var sum int64
	for i := range 10 {
		got, err := gateways[0].Totals(t.Context(), 1, []Subject{{Scope: OfSIM, ID: fmt.Sprint("sim", i), Month: 202611}})
		relaytest.NoError(t, err)
		sum += got[0].Bytes
	}
	if uses := readUses(t, gateways[1], 1, "", 0, 10); len(uses) != 500 || sum != 500 {
		t.Errorf("got %d records and a total of %d bytes, want 500 and 500", len(uses), sum)
	}
}

func BenchmarkPut(b *testing.B) { dbtest.BenchEach(b, NewStore, benchmarkPut) }

func benchmarkPut(b *testing.B, s *Store) {
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		batch := make([]Record, 1000)
		for i := range batch {
			batch[i] = record(1, fmt.Sprintf("%x-%d", n*7919, i), fmt.Sprintf("89445000000000%05d", i*31%977), n, 1000)
		}
		if err := s.Put(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "records/s")
}
