package usage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/job"
)

// BlockKind is that of the jobs that ask for the suspension of what has reached
// its limit. The account does not see them; it sees those of the SIMs. They wait
// where counting must not: for a SIM that another job has in its hands.
const BlockKind job.Kind = "usage.block"

// some is how many SIMs of a pool one job asks for.
const some = 500

// blocking is what such a job is given.
type blocking struct {
	Scope Scope  `json:"scope"`
	ID    string `json:"id"`
	Month Month  `json:"month"`
	After string `json:"after,omitempty"` // of a pool: the last ICCID of the job before
	Pool  string `json:"pool,omitempty"`  // of a SIM: the one whose limit was reached
}

// block has a SIM, or each in a pool, suspended.
func (m *Meter) block(ctx context.Context, one limited, _ int64) error {
	return m.submit(ctx, one.account, blocking{Scope: one.subject.Scope, ID: one.subject.ID, Month: one.subject.Month})
}

func (m *Meter) submit(ctx context.Context, acct account.ID, b blocking) error {
	input, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("usage: block %s %s: encode: %w", b.Scope, b.ID, err)
	}
	return m.deps.Jobs.Submit(ctx, job.Job{
		ID: fmt.Sprintf("%s-%d-%s-%s-%s-%s", BlockKind, acct, b.Scope, b.ID, b.Month, b.After+b.Pool), Account: acct, Kind: BlockKind,
		Input: input, CreatedAt: m.deps.Now(), Keep: 40 * 24 * time.Hour, // longer than the month
	})
}

// RunBlock asks for the suspension of a SIM, or of some in a pool after having had
// another job ask for the next. A month that is over blocks nothing, nor does a
// limit that was raised meanwhile. Those of a
// pool that have to wait get a job each: one that is run again would suspend
// anew what somebody has brought back into service meanwhile.
func (m *Meter) RunBlock(ctx context.Context, j job.Job) (any, error) {
	var b blocking
	if err := json.Unmarshal(j.Input, &b); err != nil {
		return nil, job.Fail("The request cannot be read.")
	}
	if MonthOf(m.deps.Now()) != b.Month {
		return nil, job.Fail("The month is over.")
	}
	if still, err := m.still(ctx, j.Account, b); err != nil || !still {
		return map[string]int{"sims": 0}, err
	}
	iccids, err := m.blocked(ctx, j.Account, b)
	if err != nil {
		return nil, err
	}
	var errs []error
	var waiting []string
	for _, iccid := range iccids {
		if err := m.deps.Suspender.Suspend(ctx, j.Account, iccid); err != nil {
			errs, waiting = append(errs, fmt.Errorf("sim %s: suspend: %w", iccid, err)), append(waiting, iccid)
		}
	}
	if len(waiting) == len(iccids) { // nothing was done, as while the operator is down
		return map[string]int{"sims": len(iccids)}, errors.Join(errs...)
	}
	for _, iccid := range waiting {
		if err := m.submit(ctx, j.Account, blocking{Scope: OfSIM, ID: iccid, Month: b.Month, Pool: b.ID}); err != nil {
			return nil, err
		}
	}
	return map[string]int{"sims": len(iccids) - len(waiting)}, nil
}

// still reports whether the limit that a job was made for blocks yet: while the
// job waited it may have been raised or lifted.
func (m *Meter) still(ctx context.Context, acct account.ID, b blocking) (bool, error) {
	s := Subject{b.Scope, b.ID, b.Month}
	if b.Pool != "" {
		s.Scope, s.ID = OfPool, b.Pool
	}
	limit, err := m.limitOf(ctx, acct, s)
	if err != nil {
		return false, err
	}
	totals, err := m.deps.Counters.Totals(ctx, acct, []Subject{s})
	if err != nil {
		return false, err
	}
	return limit.Due(Total{Bytes: totals[0].Bytes}, true).Has(Blocked), nil
}

// limitOf is the limit of a SIM or a pool; none of what is no longer there.
func (m *Meter) limitOf(ctx context.Context, acct account.ID, s Subject) (Limit, error) {
	if s.Scope == OfSIM {
		lines, err := m.deps.SIMs.Lines(ctx, acct, []string{s.ID})
		return lines[s.ID].Limit, err
	}
	pool, err := m.deps.SIMs.Pool(ctx, acct, s.ID)
	if relay.KindOf(err) == relay.KindNotFound {
		err = nil
	}
	return pool.Limit, err
}

// blocked returns the SIMs that one job asks for.
func (m *Meter) blocked(ctx context.Context, acct account.ID, b blocking) ([]string, error) {
	if b.Scope == OfSIM {
		return []string{b.ID}, nil
	}
	iccids, err := m.deps.SIMs.OfPool(ctx, acct, b.ID, b.After, some)
	if err == nil && len(iccids) == some {
		next := b
		next.After = iccids[some-1]
		err = m.submit(ctx, acct, next)
	}
	return iccids, err
}
