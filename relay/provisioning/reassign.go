package provisioning

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/sim"
)

// Reassignment selects SIMs for another subscriber: named SIMs, or all SIMs of the
// subscriber Source.
type Reassignment struct {
	Target string      `json:"target"`
	ICCIDs []sim.ICCID `json:"iccids,omitempty"`
	Source string      `json:"source,omitempty"`
	Named  []string    `json:"-"` // the ICCIDs of the request
}

// Reassign submits a job that assigns SIMs to another subscriber and returns the job's id. It returns an
// Invalid error if a subscriber is unknown or not exactly one of Named and Source is set, and the
// refusal sim.InvalidICCID for a SIM that the account does not have.
func (a *Actions) Reassign(ctx context.Context, acct relay.AccountID, r Reassignment) (string, error) {
	if err := a.checkSubscriber(ctx, acct, "target_subscriber", r.Target); err != nil {
		return "", err
	}
	switch {
	case r.Source == "" && r.Named == nil:
		return "", relay.Problem("iccids", "The iccids field is required when source subscriber is not present.")
	case r.Source != "" && r.Named != nil:
		return "", relay.Problem("source_subscriber", "The source subscriber field must not be present when iccids is.")
	case r.Source != "" && r.Source == r.Target:
		return "", relay.Problem("source_subscriber", "The source subscriber and target subscriber must be different.")
	case r.Source != "":
		if err := a.checkSubscriber(ctx, acct, "source_subscriber", r.Source); err != nil {
			return "", err
		}
	default:
		var err error
		if r.ICCIDs, err = sim.ParseICCIDs(r.Named); err != nil {
			return "", err
		}
		found, err := a.deps.SIMs.GetMany(ctx, acct, r.ICCIDs)
		if err != nil {
			return "", err
		}
		for _, iccid := range r.ICCIDs {
			if _, ok := found[iccid]; !ok {
				return "", sim.InvalidICCID(string(iccid))
			}
		}
	}
	j, err := a.newJob(acct, BulkReassign, r)
	if err != nil {
		return "", err
	}
	return j.ID, a.deps.Submit.Submit(ctx, j)
}

// runReassign assigns SIMs to a subscriber for the RunTime. The next run continues.
func (a *Actions) runReassign(ctx context.Context, j job.Job) (any, error) {
	var r Reassignment
	if err := json.Unmarshal(j.Input, &r); err != nil {
		return nil, fmt.Errorf("provisioning: job %s: input: %w", j.ID, err)
	}
	// An old job waits until the account's older reassignments have ended: two jobs that assign the
	// same SIMs to different subscribers would undo each other forever.
	if a.opts.Now().Sub(j.CreatedAt) >= concurrentFor {
		filter := job.Filter{List: List, State: job.Processing, Kind: BulkReassign.Kind()}
		found, _, err := a.deps.Jobs.List(ctx, j.Account, filter, 0, 1)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 && found[0].ID != j.ID {
			return nil, job.Pause(time.Second)
		}
	}
	runEnd := a.opts.Now().Add(a.opts.RunTime)
	for {
		// The next batch: SIMs of the source, or named SIMs that are not assigned yet.
		var iccids []sim.ICCID
		var err error
		if r.Source != "" {
			iccids, err = a.deps.SIMs.Scan(ctx, j.Account, sim.Scope{Subscriber: r.Source}, "", batchSize)
		} else {
			var found map[sim.ICCID]sim.SIM
			found, err = a.deps.SIMs.GetMany(ctx, j.Account, r.ICCIDs)
			for _, iccid := range r.ICCIDs {
				if s, ok := found[iccid]; ok && s.Subscriber != r.Target && len(iccids) < batchSize {
					iccids = append(iccids, iccid)
				}
			}
		}
		if err != nil || len(iccids) == 0 {
			return map[string]string{"subscriber_id": r.Target}, err
		}
		if err := a.assign(ctx, j.Account, iccids, r); err != nil {
			return nil, err
		}
		if !a.opts.Now().Before(runEnd) {
			return nil, job.Pause(0)
		}
	}
}

// concurrentFor is the time for which reassignments of an account may run concurrently.
const concurrentFor = time.Minute

// batchSize is the number of SIMs assigned between checks of the time slice.
const batchSize = 500

// concurrency is the number of SIMs that are changed concurrently.
const concurrency = 16

// assign assigns SIMs to a subscriber. It skips SIMs that were reassigned or deleted
// meanwhile, and returns the first error in the order of the SIMs.
func (a *Actions) assign(ctx context.Context, acct relay.AccountID, iccids []sim.ICCID, r Reassignment) error {
	var wg sync.WaitGroup
	errs := make([]error, len(iccids))
	slots := make(chan struct{}, concurrency)
	for i, iccid := range iccids {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			err := relay.Recovered("reassignment of SIM "+string(iccid), func() error {
				_, err := a.deps.SIMs.Change(ctx, acct, iccid, func(card *sim.SIM) error {
					if r.Source == "" || card.Subscriber == r.Source {
						card.Subscriber = r.Target
					}
					return nil
				})
				return err
			})
			if relay.KindOf(err) != relay.KindNotFound {
				errs[i] = err
			}
		})
	}
	wg.Wait()
	return cmp.Or(errs...)
}
