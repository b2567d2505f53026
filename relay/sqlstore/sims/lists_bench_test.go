package sims

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sqlstore"
	"github.com/penstock/penstock/relay/sqlstore/sqltest"
)

var manySIMs = flag.Int("sims", 100_000, "how many SIMs BenchmarkLists has")

// BenchmarkLists reads pages by every filter and order, in turns with as many rows by
// their primary key, and reports the ratio of the medians: of the thread's CPU on
// SQLite, which other work on the machine leaves alone, and of time on PostgreSQL.
//
//	go test ./relay/sqlstore/sims -run '^$' -bench Lists -benchtime 1x -sims 1000000
func BenchmarkLists(b *testing.B) {
	b.Run("on SQLite", func(b *testing.B) { readLists(b, sqltest.Open(b, sqlstore.Options{}), threadTime) })
	b.Run("on PostgreSQL", func(b *testing.B) {
		url := sqltest.Shared(b).NewDatabase(b)
		readLists(b, sqltest.Open(b, sqlstore.Options{URL: url, Timeout: 5 * time.Minute}), func() time.Duration { return time.Duration(time.Now().UnixNano()) })
	})
}

// threadTime is the CPU time of this thread.
func threadTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(1, &u) // RUSAGE_THREAD
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// numbered is the i-th of n SIMs: three orders of the same SIMs.
func numbered(i, n int) sim.SIM {
	return sim.SIM{
		ICCID: sim.ICCID(fmt.Sprintf("8944%015d", i)), IMSI: fmt.Sprintf("23415%010d", i*7919%n), MSISDN: fmt.Sprintf("447%09d", i*104729%n),
		Service4G: true, Codes: sim.Codes{PIN: "1234", PIN2: "5678", PUK: "12345678", PUK2: "87654321"}, State: sim.Active,
	}
}

func readLists(b *testing.B, db *sqlstore.DB, clock func() time.Duration) {
	s, n, ctx := NewSIMs(db), *manySIMs, b.Context()
	for from := 0; from < n; from += 5000 {
		var all []sim.SIM
		for i := from; i < min(n, from+5000); i++ {
			all = append(all, numbered(i, n))
		}
		if err := s.Declare(ctx, 1, all, false); err != nil {
			b.Fatal(err)
		}
	}
	if db.Engine() == "postgresql" {
		if err := db.Run(ctx, "test", "ANALYZE"); err != nil {
			b.Fatal(err)
		}
	}
	floor := func(round int) {
		iccids := make([]sim.ICCID, 100)
		for i := range iccids {
			iccids[i] = numbered((round*9973+i)%n, n).ICCID
		}
		if all, err := s.GetMany(ctx, 1, iccids); err != nil || len(all) != 100 {
			b.Fatal(len(all), err)
		}
	}
	tenth := func(column string) string { // what a tenth of the values begin with
		v := columnValues(numbered(0, n))[slices.Index(sim.Columns(), column)]
		return v[:len(v)-len(fmt.Sprint(n-1))] + "4"
	}
	begins := func(column, value string) sim.Filter {
		return sim.Filter{Column: column, Match: sim.Begins, Value: value}
	}
	for _, tc := range []struct {
		name  string
		query sim.Query
	}{
		{"first by iccid", sim.Query{OrderBy: "iccid"}},
		{"middle by iccid", sim.Query{OrderBy: "iccid", Page: relay.Page{Number: n / 200}}},
		{"middle by msisdn", sim.Query{OrderBy: "msisdn", Page: relay.Page{Number: n / 200}}},
		{"last by imsi, descending", sim.Query{OrderBy: "imsi", Descending: true, Page: relay.Page{Number: n / 100}}},
		{"imsi is", sim.Query{Filters: []sim.Filter{{Column: "imsi", Value: numbered(n/3, n).IMSI}}}},
		{"imsi is not, middle", sim.Query{Filters: []sim.Filter{{Column: "imsi", Match: sim.Differs, Value: numbered(n/3, n).IMSI}}, Page: relay.Page{Number: n / 200}}},
		{"100 begin", sim.Query{Filters: []sim.Filter{begins("imsi", numbered(n/3, n).IMSI[:13])}}},
		{"100 begin, by msisdn", sim.Query{OrderBy: "msisdn", Filters: []sim.Filter{begins("imsi", numbered(n/3, n).IMSI[:13])}}},
		{"1,000 begin, by msisdn", sim.Query{OrderBy: "msisdn", Filters: []sim.Filter{begins("imsi", numbered(n/3, n).IMSI[:12])}}},
		{"a tenth begins, middle", sim.Query{OrderBy: "imsi", Filters: []sim.Filter{begins("imsi", tenth("imsi"))}, Page: relay.Page{Number: n / 2000}}},
		{"a tenth begins, first by msisdn", sim.Query{OrderBy: "msisdn", Filters: []sim.Filter{begins("imsi", tenth("imsi"))}}},
		{"a tenth begins, middle by msisdn", sim.Query{OrderBy: "msisdn", Filters: []sim.Filter{begins("imsi", tenth("imsi"))}, Page: relay.Page{Number: n / 2000}}},
		{"a hundredth begins, middle by msisdn", sim.Query{OrderBy: "msisdn", Filters: []sim.Filter{begins("imsi", tenth("imsi")+"4")}, Page: relay.Page{Number: n / 20000}}},
		{"two tenths begin", sim.Query{Filters: []sim.Filter{begins("iccid", tenth("iccid")), begins("msisdn", tenth("msisdn"))}}},
		{"two tenths begin, middle by imsi", sim.Query{OrderBy: "imsi", Filters: []sim.Filter{begins("iccid", tenth("iccid")), begins("msisdn", tenth("msisdn"))}, Page: relay.Page{Number: n / 20000}}},
	} {
		tc.query.PerPage, tc.query.Number = 100, max(1, tc.query.Number)
		b.Run(tc.name, func(b *testing.B) {
			const rounds = 40
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var bare, page [rounds]time.Duration
			timed := func(do func()) time.Duration {
				began := clock()
				do()
				return clock() - began
			}
			list := func() { readList(ctx, b, s, tc.query) }
			first := timed(list)
			for i := range rounds {
				bare[i], page[i] = timed(func() { floor(i) }), timed(list)
			}
			slices.Sort(bare[:])
			slices.Sort(page[:])
			least := float64(bare[rounds/2])
			b.ReportMetric(float64(first)/least, "first/floor")
			b.ReportMetric(float64(page[rounds/2])/least, "p50/floor")
			b.ReportMetric(float64(page[rounds-1])/least, "max/floor")
			b.ReportMetric(least/1000, "µs-floor")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func readList(ctx context.Context, b *testing.B, s *SIMs, q sim.Query) {
	if found, total, err := s.List(ctx, 1, sim.Scope{}, q); err != nil || total == 0 || len(found) == 0 {
		b.Fatal(len(found), total, err)
	}
}
