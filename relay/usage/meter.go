package usage

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sim"
)

// MeterDeps are the dependencies of a Meter; all but Now are required.
type MeterDeps struct {
	Counters  Counters
	SIMs      SIMs
	Pools     Pools
	Events    outbox.Notifier
	Mails     outbox.Mailer // to recipients
	Suspender Suspender
	Jobs      job.Submitter
	Now       func() time.Time
}

// Meter counts the usage of SIMs and enforces their limits.
type Meter struct{ deps MeterDeps }

// NewMeter returns a Meter.
func NewMeter(d MeterDeps) (*Meter, error) {
	if d.Counters == nil || d.SIMs == nil || d.Pools == nil || d.Events == nil || d.Mails.Store == nil || d.Mails.Dispatcher == nil || d.Suspender == nil || d.Jobs == nil {
		return nil, errors.New("usage: a dependency of the meter is missing")
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return &Meter{d}, nil
}

// Take saves and counts records and enforces their limits. unknown are the indexes
// of records whose account has no such SIM, which are not saved. After an error the
// same records may be passed again.
func (m *Meter) Take(ctx context.Context, records []Record) (unknown []int, err error) {
	sims, err := m.findSIMs(ctx, records)
	if err != nil {
		return nil, err
	}
	known := make([]Record, 0, len(records))
	for i, r := range records {
		stored, ok := sims[r.Account][sim.ICCID(r.Use.ICCID)]
		if !ok {
			unknown = append(unknown, i)
			continue
		}
		r.Pool = stored.Pool
		known = append(known, r)
	}
	if err := m.deps.Counters.Put(ctx, known); err != nil {
		return nil, err
	}
	return unknown, m.enforce(ctx, known, sims)
}

// lookupBatch is the maximum number of SIMs in one lookup.
const lookupBatch = 1000

// findSIMs looks up the SIMs of records, by account and ICCID.
func (m *Meter) findSIMs(ctx context.Context, records []Record) (map[relay.AccountID]map[sim.ICCID]sim.SIM, error) {
	result := make(map[relay.AccountID]map[sim.ICCID]bool)
	for _, r := range records {
		if result[r.Account] == nil {
			result[r.Account] = make(map[sim.ICCID]bool)
		}
		result[r.Account][sim.ICCID(r.Use.ICCID)] = true
	}
	sims := make(map[relay.AccountID]map[sim.ICCID]sim.SIM, len(result))
	for acct, iccids := range result {
		sims[acct] = make(map[sim.ICCID]sim.SIM, len(iccids))
		for chunk := range slices.Chunk(slices.Collect(maps.Keys(iccids)), lookupBatch) {
			found, err := m.deps.SIMs.GetMany(ctx, acct, chunk)
			if err != nil {
				return nil, err
			}
			maps.Copy(sims[acct], found)
		}
	}
	return sims, nil
}

// enforce applies limits after records were counted, also for records that were
// counted before, because a process may have died in between. Notifications are
// sent once. A limit that blocks is enforced whenever it is reached, but for the
// current month only: late records of last month must not suspend a SIM now.
func (m *Meter) enforce(ctx context.Context, records []Record, sims map[relay.AccountID]map[sim.ICCID]sim.SIM) error {
	limits, err := m.limited(ctx, records, sims)
	if err != nil {
		return err
	}
	slices.SortFunc(limits, func(a, b limited) int {
		return cmp.Or(
			cmp.Compare(a.account, b.account),
			cmp.Compare(b.subject.Scope, a.subject.Scope), // those of SIMs before those of pools
			cmp.Compare(a.subject.ID, b.subject.ID),
			cmp.Compare(a.subject.Month, b.subject.Month),
		)
	})
	reached := make(map[counter]bool)
	for _, l := range limits {
		totals, err := m.deps.Counters.Totals(ctx, l.account, []Subject{l.subject})
		if err != nil {
			return err
		}
		total := totals[0]
		if err := m.notifyDue(ctx, l, total.Bytes, l.due(total)); err != nil {
			return err
		}
		if !l.limit.Blocks() || total.Bytes < l.limit.Monthly || l.subject.Month != MonthOf(m.deps.Now()) {
			continue
		}
		reached[l.counter] = true
		if l.subject.Scope == OfPool && !total.Done.Has(Blocked) {
			if err := m.blockPool(ctx, l.account, l.subject); err != nil {
				return err
			}
		}
	}

	// Suspend the SIMs of records whose limits are reached.
	iccids := make(map[relay.AccountID][]sim.ICCID)
	seen := make(map[counter]bool)
	for _, r := range records {
		c, pool := r.counters()
		if seen[c] || !reached[c] && !reached[pool] {
			continue
		}
		seen[c] = true
		iccids[r.Account] = append(iccids[r.Account], sim.ICCID(r.Use.ICCID))
	}
	for acct, accountICCIDs := range iccids {
		if err := m.blockSIMs(ctx, acct, accountICCIDs); err != nil {
			return err
		}
	}
	return nil
}

// counter names a total that a record adds to.
type counter struct {
	account relay.AccountID
	subject Subject
}

// counters returns the totals that a record adds to: its SIM's and its pool's, whose
// id is empty if the SIM is in none.
func (r Record) counters() (c, pool counter) {
	month := MonthOf(r.Use.Start)
	return counter{r.Account, Subject{OfSIM, r.Use.ICCID, month}}, counter{r.Account, Subject{OfPool, r.Pool, month}}
}

// limited finds the subjects of records that have a limit.
func (m *Meter) limited(ctx context.Context, records []Record, sims map[relay.AccountID]map[sim.ICCID]sim.SIM) ([]limited, error) {
	seen := make(map[counter]bool)
	var limits []limited
	for _, r := range records {
		c, poolCounter := r.counters()
		if !seen[c] {
			seen[c] = true
			if s := sims[r.Account][sim.ICCID(r.Use.ICCID)]; s.Limit.IsSet() {
				limits = append(limits, limited{counter: c, limit: s.Limit, recipients: s.Recipients})
			}
		}
		if r.Pool == "" || seen[poolCounter] {
			continue
		}
		seen[poolCounter] = true
		pool, err := m.pool(ctx, r.Account, r.Pool)
		if err != nil {
			return nil, err
		}
		if pool.Limit.IsSet() {
			limits = append(limits, limited{counter: poolCounter, name: pool.Name, limit: pool.Limit, recipients: pool.Recipients})
		}
	}
	return limits, nil
}

// limited is a subject whose limit may have been crossed.
type limited struct {
	counter
	name       string // of a pool
	limit      sim.Limit
	recipients []sim.Recipient
}

// due returns the steps that a total requires and that are not done yet. The warning
// is independent of the cap, which says what happens at the limit.
func (l limited) due(t Total) Steps {
	var due Steps
	if l.limit.Warning > 0 && t.Bytes >= l.limit.Warning {
		due |= Warned
	}
	if l.limit.Caps() && t.Bytes >= l.limit.Monthly {
		due |= Reached
	}
	return due &^ t.Done
}
