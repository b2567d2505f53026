package usage

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/outbox"
)

// MeterDeps is what usage is counted with; all but Now are needed.
type MeterDeps struct {
	Counters   Counters
	SIMs       SIMs
	Events     Events
	Deliveries Deliveries
	Dispatcher outbox.Dispatcher
	Suspender  Suspender
	Jobs       job.Submitter
	Now        func() time.Time
}

// MeterOptions are what may be chosen.
type MeterOptions struct {
	MailDomain string        // the right side of Message-IDs
	Lease      time.Duration // of a mail's first attempt; 0 means 1 min
}

// Meter counts what SIMs use and holds it to their limits.
type Meter struct {
	deps MeterDeps
	opts MeterOptions
}

// NewMeter returns a Meter.
func NewMeter(d MeterDeps, o MeterOptions) (*Meter, error) {
	if d.Counters == nil || d.SIMs == nil || d.Events == nil || d.Deliveries == nil || d.Dispatcher == nil || d.Suspender == nil || d.Jobs == nil {
		return nil, errors.New("usage: a meter needs everything but a clock")
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	o.Lease, o.MailDomain = cmp.Or(o.Lease, time.Minute), cmp.Or(o.MailDomain, "localhost")
	return &Meter{deps: d, opts: o}, nil
}

// Take keeps and counts records and does what their limits ask for. strangers are
// the indexes of those whose account has no such SIM, which are not kept. After an
// error the same records may be taken again.
func (m *Meter) Take(ctx context.Context, records []Record) (strangers []int, err error) {
	lines, err := m.lines(ctx, records)
	if err != nil {
		return nil, err
	}
	known := make([]Record, 0, len(records))
	for i, r := range records {
		line, ok := lines[r.Account][r.Use.ICCID]
		if !ok {
			strangers = append(strangers, i)
			continue
		}
		r.Pool = line.Pool
		known = append(known, r)
	}
	if err := m.deps.Counters.Put(ctx, known); err != nil {
		return nil, err
	}
	return strangers, m.hold(ctx, known, lines)
}

// atOnce is how many SIMs are looked up at one time.
const atOnce = 1000

// lines looks up the SIMs of records.
func (m *Meter) lines(ctx context.Context, records []Record) (map[account.ID]map[string]Line, error) {
	asked := make(map[account.ID]map[string]bool)
	for _, r := range records {
		if asked[r.Account] == nil {
			asked[r.Account] = make(map[string]bool)
		}
		asked[r.Account][r.Use.ICCID] = true
	}
	lines := make(map[account.ID]map[string]Line, len(asked))
	for acct, iccids := range asked {
		lines[acct] = make(map[string]Line, len(iccids))
		for some := range slices.Chunk(slices.Collect(maps.Keys(iccids)), atOnce) {
			found, err := m.deps.SIMs.Lines(ctx, acct, some)
			if err != nil {
				return nil, err
			}
			maps.Copy(lines[acct], found)
		}
	}
	return lines, nil
}

// hold does what limits ask for after records were counted, also for those that
// were counted before: a process may have died in between.
func (m *Meter) hold(ctx context.Context, records []Record, lines map[account.ID]map[string]Line) error {
	all, err := m.limited(ctx, records, lines)
	if err != nil {
		return err
	}
	slices.SortFunc(all, before)
	for _, one := range all {
		totals, err := m.deps.Counters.Totals(ctx, one.account, []Subject{one.subject})
		if err != nil {
			return err
		}
		due := one.limit.Due(totals[0], one.subject.Month == MonthOf(m.deps.Now()))
		if err := m.do(ctx, one, totals[0].Bytes, due); err != nil {
			return err
		}
	}
	return nil
}

// before has the limits of SIMs come before those of pools.
func before(a, b limited) int {
	if c := cmp.Compare(a.account, b.account); c != 0 {
		return c
	}
	if a.subject.Scope != b.subject.Scope {
		return strings.Compare(string(b.subject.Scope), string(a.subject.Scope)) // sim, pool
	}
	return cmp.Or(strings.Compare(a.subject.ID, b.subject.ID), cmp.Compare(a.subject.Month, b.subject.Month))
}

// limited finds the subjects of records that have a limit.
func (m *Meter) limited(ctx context.Context, records []Record, lines map[account.ID]map[string]Line) ([]limited, error) {
	type key struct {
		account account.ID
		subject Subject
	}
	seen := make(map[key]bool)
	var all []limited
	for _, r := range records {
		month := MonthOf(r.Use.Start)
		if k := (key{r.Account, Subject{OfSIM, r.Use.ICCID, month}}); !seen[k] {
			seen[k] = true
			if limit := lines[r.Account][r.Use.ICCID].Limit; limit.set() {
				all = append(all, limited{account: r.Account, subject: k.subject, limit: limit})
			}
		}
		k := key{r.Account, Subject{OfPool, r.Pool, month}}
		if r.Pool == "" || seen[k] {
			continue
		}
		seen[k] = true
		pool, err := m.deps.SIMs.Pool(ctx, r.Account, r.Pool)
		if err != nil && relay.KindOf(err) != relay.KindNotFound {
			return nil, err
		}
		if pool.Limit.set() {
			all = append(all, limited{account: r.Account, subject: k.subject, name: pool.Name, limit: pool.Limit})
		}
	}
	return all, nil
}
