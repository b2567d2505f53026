package usage

import (
	"cmp"
	"context"
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
func NewMeter(d MeterDeps) *Meter {
	if d.Now == nil {
		d.Now = time.Now
	}
	return &Meter{d}
}

// Take saves and counts records and enforces the limits of their SIMs and pools. It does not save
// records of SIMs that the account does not have, and returns their indexes. After an error, the
// caller may pass the same records again.
func (m *Meter) Take(ctx context.Context, records []Record) (unknown []int, err error) {
	sims, err := m.findSIMs(ctx, records)
	if err != nil {
		return nil, err
	}
	counted := make([]Record, 0, len(records))
	for i, r := range records {
		stored, ok := sims[r.Account][sim.ICCID(r.Use.ICCID)]
		if !ok {
			unknown = append(unknown, i)
			continue
		}
		r.Pool = stored.Pool
		counted = append(counted, r)
	}
	if err := m.deps.Counters.Put(ctx, counted); err != nil {
		return nil, err
	}
	return unknown, m.enforce(ctx, counted, sims)
}

// lookupBatch is the maximum number of SIMs in one lookup.
const lookupBatch = 1000

// findSIMs looks up the SIMs of records, by account and ICCID.
func (m *Meter) findSIMs(ctx context.Context, records []Record) (map[relay.AccountID]map[sim.ICCID]sim.SIM, error) {
	iccids := make(map[relay.AccountID][]sim.ICCID)
	for _, r := range records {
		iccids[r.Account] = append(iccids[r.Account], sim.ICCID(r.Use.ICCID))
	}
	sims := make(map[relay.AccountID]map[sim.ICCID]sim.SIM, len(iccids))
	for acct, list := range iccids {
		slices.Sort(list)
		sims[acct] = make(map[sim.ICCID]sim.SIM, len(list))
		for chunk := range slices.Chunk(slices.Compact(list), lookupBatch) {
			chunkSIMs, err := m.deps.SIMs.GetMany(ctx, acct, chunk)
			if err != nil {
				return nil, err
			}
			maps.Copy(sims[acct], chunkSIMs)
		}
	}
	return sims, nil
}

// enforce applies the limits of counted records. It includes records that an earlier call has
// counted, because a process may have stopped before applying the limits. Each notification is
// sent once. A blocking limit is enforced for the current month only: late records of the last
// month must not suspend a SIM now.
func (m *Meter) enforce(ctx context.Context, records []Record, sims map[relay.AccountID]map[sim.ICCID]sim.SIM) error {
	limits, err := m.limitsOf(ctx, records, sims)
	if err != nil {
		return err
	}
	slices.SortFunc(limits, func(a, b limitedCounter) int { return compareCounters(a.counter, b.counter) })
	reached := make(map[counter]bool)
	for _, l := range limits {
		totals, err := m.deps.Counters.Totals(ctx, l.account, []Subject{l.subject})
		if err != nil {
			return err
		}
		total := totals[0]
		if err := m.notifyDue(ctx, l, total.Bytes, l.stepsDue(total)); err != nil {
			return err
		}
		if !l.limit.Blocks() || total.Bytes < l.limit.Monthly || l.subject.Month != MonthOf(m.deps.Now()) {
			continue
		}
		reached[l.counter] = true
		if l.subject.Scope == OfPool && !total.Steps.Has(Blocked) {
			if err := m.blockPool(ctx, l.account, l.subject); err != nil {
				return err
			}
		}
	}

	// Suspend the SIMs of records whose limits are reached.
	iccids := make(map[relay.AccountID][]sim.ICCID)
	seen := make(map[counter]bool)
	for _, r := range records {
		c, poolCounter := r.counters()
		if seen[c] || !reached[c] && !reached[poolCounter] {
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

// counter identifies a total.
type counter struct {
	account relay.AccountID
	subject Subject
}

// compareCounters orders the counters of an account: SIMs before pools.
func compareCounters(a, b counter) int {
	return cmp.Or(
		cmp.Compare(a.account, b.account),
		cmp.Compare(b.subject.Scope, a.subject.Scope),
		cmp.Compare(a.subject.ID, b.subject.ID),
		cmp.Compare(a.subject.Month, b.subject.Month),
	)
}

// counters returns the counters of the SIM and of the pool. If the SIM is in no pool, the
// subject of the pool's counter has an empty id.
func (r Record) counters() (simCounter, poolCounter counter) {
	month := MonthOf(r.Use.Start)
	return counter{r.Account, Subject{OfSIM, r.Use.ICCID, month}}, counter{r.Account, Subject{OfPool, r.Pool, month}}
}

// limitsOf returns the limits of the SIMs and pools of records.
func (m *Meter) limitsOf(ctx context.Context, records []Record, sims map[relay.AccountID]map[sim.ICCID]sim.SIM) ([]limitedCounter, error) {
	seen := make(map[counter]bool)
	var limits []limitedCounter
	for _, r := range records {
		c, poolCounter := r.counters()
		if !seen[c] {
			seen[c] = true
			if s := sims[r.Account][sim.ICCID(r.Use.ICCID)]; s.Limit.IsSet() {
				limits = append(limits, limitedCounter{counter: c, limit: s.Limit, recipients: s.Recipients})
			}
		}
		if r.Pool == "" || seen[poolCounter] {
			continue
		}
		seen[poolCounter] = true
		pool, err := m.loadPool(ctx, r.Account, r.Pool)
		if err != nil {
			return nil, err
		}
		if pool.Limit.IsSet() {
			limits = append(limits, limitedCounter{counter: poolCounter, name: pool.Name, limit: pool.Limit, recipients: pool.Recipients})
		}
	}
	return limits, nil
}

// limitedCounter is a counter with a limit.
type limitedCounter struct {
	counter
	name       string // of a pool
	limit      sim.Limit
	recipients []sim.Recipient
}

// stepsDue returns the steps that a total requires and that are not done yet. The warning does not
// depend on the action, which determines the effect of the limit.
func (l limitedCounter) stepsDue(t Total) Steps {
	var due Steps
	if l.limit.Warning > 0 && t.Bytes >= l.limit.Warning {
		due |= Warned
	}
	if l.limit.HasAction() && t.Bytes >= l.limit.Monthly {
		due |= LimitReported
	}
	return due &^ t.Steps
}
