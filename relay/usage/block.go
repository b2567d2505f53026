package usage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/sim"
)

// BlockKind is the kind of the jobs that order the suspension of SIMs whose limit is reached. The
// account's list of jobs shows the suspensions, but not jobs of this kind. Such a job may wait for a
// SIM that another job has reserved; the counting of records must not wait.
const BlockKind job.Kind = "usage.block"

const (
	// pageSize is the number of a pool's or a subscriber's SIMs that a job reads at a time.
	pageSize = 500
	// blockRetention is the time for which the jobs of EnforceSIMs and of pools are stored after their
	// end. A job of a pool that runs again must not create the job of the next page a second time.
	blockRetention = 40 * 24 * time.Hour
)

// blockRequest is the input of a job: SIMs, or a pool.
type blockRequest struct {
	ICCIDs []sim.ICCID `json:"iccids,omitempty"`
	Pool   string      `json:"pool,omitempty"`
	Scan   string      `json:"walk,omitempty"`  // common to the jobs for all pages of the pool
	After  sim.ICCID   `json:"after,omitempty"` // the last ICCID of the previous page
}

func (m *Meter) submit(ctx context.Context, acct relay.AccountID, id string, b blockRequest, retention time.Duration) error {
	input, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("usage: block %s: encode: %w", id, err)
	}
	return m.deps.Jobs.Submit(ctx, job.Job{
		ID: fmt.Sprintf("%s-%d-%s", BlockKind, acct, id), Account: acct, Kind: BlockKind,
		Input: input, CreatedAt: m.deps.Now(), Retention: retention,
	})
}

// EnforceSIMs suspends the SIMs that are in service although they or their pool have reached a
// blocking limit. Callers use it for SIMs that were activated or attached to a pool, or whose limit
// has changed; Take does the same for the SIMs of records.
func (m *Meter) EnforceSIMs(ctx context.Context, acct relay.AccountID, iccids []sim.ICCID) error {
	overruns, err := m.findOverruns(ctx, acct, iccids)
	if err != nil || len(overruns) == 0 {
		return err
	}
	b := blockRequest{}
	for _, o := range overruns {
		b.ICCIDs = append(b.ICCIDs, o.iccid)
	}
	return m.submit(ctx, acct, relay.NewUUID(m.deps.Now()), b, blockRetention)
}

// EnforcePool does the same as EnforceSIMs for all SIMs of a pool. Callers use it after a change of
// the pool's limit.
func (m *Meter) EnforcePool(ctx context.Context, acct relay.AccountID, pool string) error {
	isOver, err := m.poolIsOverLimit(ctx, acct, pool)
	if err != nil || !isOver {
		return err
	}
	return m.blockPool(ctx, acct, m.currentSubject(OfPool, pool))
}

// blockPool suspends each SIM in a pool and records the step. SIMs that are activated later are
// suspended one by one, until usage is below the limit again.
func (m *Meter) blockPool(ctx context.Context, acct relay.AccountID, s Subject) error {
	b := blockRequest{Pool: s.ID, Scan: relay.NewUUID(m.deps.Now())}
	if err := m.submit(ctx, acct, b.Scan, b, blockRetention); err != nil {
		return err
	}
	return m.deps.Counters.AddSteps(ctx, acct, s, Blocked)
}

// blockSIMs suspends the SIMs of records. The job's id contains the reached limit, so that further
// records create no second job before the job has ended.
func (m *Meter) blockSIMs(ctx context.Context, acct relay.AccountID, iccids []sim.ICCID) error {
	overruns, err := m.findOverruns(ctx, acct, iccids)
	if err != nil {
		return err
	}
	for _, o := range overruns {
		id := fmt.Sprintf("%s-%s-%s-%s-%d", o.iccid, o.subject.Scope, o.subject.ID, o.subject.Month, o.limit)
		if err := m.submit(ctx, acct, id, blockRequest{ICCIDs: []sim.ICCID{o.iccid}}, time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// RunBlock suspends SIMs, or a page of a pool's SIMs after submitting the job for the next page. It
// skips SIMs that are no longer over their limit, for example because the limit was raised. If
// another job has reserved a SIM, the job is tried again.
func (m *Meter) RunBlock(ctx context.Context, j job.Job) (any, error) {
	var b blockRequest
	if err := json.Unmarshal(j.Input, &b); err != nil {
		return nil, job.Fail("The request cannot be read.")
	}
	iccids := b.ICCIDs
	if b.Pool != "" {
		isOver, err := m.poolIsOverLimit(ctx, j.Account, b.Pool)
		if err != nil {
			return nil, err
		}
		iccids = nil
		if isOver {
			if iccids, err = m.deps.SIMs.Scan(ctx, j.Account, sim.Scope{Pool: b.Pool}, b.After, pageSize); err != nil {
				return nil, err
			}
		}
		if len(iccids) == pageSize {
			b.After = iccids[pageSize-1]
			if err := m.submit(ctx, j.Account, b.Scan+"-"+string(b.After), b, blockRetention); err != nil {
				return nil, err
			}
		}
	}
	overruns, err := m.findOverruns(ctx, j.Account, iccids)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, o := range overruns {
		if err := m.deps.Suspender.Suspend(ctx, j.Account, o.iccid); err != nil {
			errs = append(errs, fmt.Errorf("sim %s: suspend: %w", o.iccid, err))
		}
	}
	return map[string]int{"sims": len(overruns)}, errors.Join(errs...)
}

// poolIsOverLimit reports whether a pool has reached a blocking limit. If it has not, poolIsOverLimit
// removes the step Blocked.
func (m *Meter) poolIsOverLimit(ctx context.Context, acct relay.AccountID, id string) (bool, error) {
	pool, err := m.loadPool(ctx, acct, id)
	if err != nil {
		return false, err
	}
	s, limitBytes := m.currentSubject(OfPool, id), int64(math.MaxInt64)
	if pool.Limit.Blocks() {
		limitBytes = pool.Limit.Monthly
	}
	if err := m.deps.Counters.RemoveSteps(ctx, acct, s, Blocked, limitBytes); err != nil {
		return false, err
	}
	totals, err := m.deps.Counters.Totals(ctx, acct, []Subject{s})
	return err == nil && totals[0].Bytes >= limitBytes, err
}

// loadPool loads a pool; a deleted pool has no limit.
func (m *Meter) loadPool(ctx context.Context, acct relay.AccountID, id string) (sim.Pool, error) {
	pool, err := m.deps.Pools.Get(ctx, acct, id)
	if relay.KindOf(err) == relay.KindNotFound {
		return sim.Pool{}, nil
	}
	return pool, err
}

// currentSubject returns the subject for the current month.
func (m *Meter) currentSubject(scope Scope, id string) Subject {
	return Subject{scope, id, MonthOf(m.deps.Now())}
}

// overrun is a SIM that is in service although a blocking limit is reached.
type overrun struct {
	iccid   sim.ICCID
	subject Subject // the SIM or its pool
	limit   int64   // bytes
}

// findOverruns returns the SIMs that are in service although they or their pool have reached a
// blocking limit.
func (m *Meter) findOverruns(ctx context.Context, acct relay.AccountID, iccids []sim.ICCID) ([]overrun, error) {
	var overruns []overrun
	for chunk := range slices.Chunk(iccids, lookupBatch) {
		sims, err := m.deps.SIMs.GetMany(ctx, acct, chunk)
		if err != nil {
			return nil, err
		}
		reachedLimits, err := m.reachedLimits(ctx, acct, sims)
		if err != nil {
			return nil, err
		}
		for _, iccid := range chunk {
			card, found := sims[iccid]
			if !found || !card.InService() {
				continue
			}
			for _, s := range []Subject{m.currentSubject(OfSIM, string(iccid)), m.currentSubject(OfPool, card.Pool)} {
				if limit, ok := reachedLimits[s]; ok {
					overruns = append(overruns, overrun{iccid, s, limit})
					break
				}
			}
		}
	}
	return overruns, nil
}

// reachedLimits returns the blocking limits that SIMs in service and their pools have reached, in bytes.
func (m *Meter) reachedLimits(ctx context.Context, acct relay.AccountID, sims map[sim.ICCID]sim.SIM) (map[Subject]int64, error) {
	limits := make(map[Subject]sim.Limit)
	for iccid, card := range sims {
		if !card.InService() {
			continue
		}
		limits[m.currentSubject(OfSIM, string(iccid))] = card.Limit
		s := m.currentSubject(OfPool, card.Pool)
		if _, known := limits[s]; known || card.Pool == "" {
			continue
		}
		pool, err := m.loadPool(ctx, acct, card.Pool)
		if err != nil {
			return nil, err
		}
		limits[s] = pool.Limit
	}
	var subjects []Subject
	for s, limit := range limits {
		if limit.Blocks() {
			subjects = append(subjects, s)
		}
	}
	if len(subjects) == 0 {
		return nil, nil
	}
	totals, err := m.deps.Counters.Totals(ctx, acct, subjects)
	if err != nil {
		return nil, err
	}
	reachedLimits := make(map[Subject]int64)
	for i, s := range subjects {
		if limit := limits[s].Monthly; totals[i].Bytes >= limit {
			reachedLimits[s] = limit
		}
	}
	return reachedLimits, nil
}
