package sims

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sqlstore"
	"github.com/penstock/penstock/relay/sqlstore/jobs"
)

// Orders keeps SIMs in step with jobs.
type Orders struct{ lists }

// NewOrders returns the store of SIM jobs.
func NewOrders(db *sqlstore.DB) *Orders { return &Orders{newLists(db)} }

// Begin saves what change makes of a SIM together with a new job. A job that is
// there has begun: the answer was lost then, and it may have changed the SIM since.
func (s *Orders) Begin(ctx context.Context, j job.Job, iccid sim.ICCID, change func(*sim.SIM) error) error {
	return s.db.Write(ctx, "job "+j.ID+": begin", func(ctx context.Context, tx *sqlstore.Tx) error {
		created, err := jobs.Create(ctx, tx, j)
		if err != nil || !created {
			return err
		}
		_, err = changeOne(ctx, tx, j.Account, iccid, s.size, change)
		return err
	})
}

// Settle saves what change makes of a SIM together with what the job came to.
func (s *Orders) Settle(
	ctx context.Context, j job.Job, iccid sim.ICCID, change func(*sim.SIM) (json.RawMessage, error),
) (json.RawMessage, error) {
	ref, noun := job.Ref{Account: j.Account, ID: j.ID}, "job "+j.ID+": settle"
	return sqlstore.Transact(ctx, s.db, noun, func(ctx context.Context, tx *sqlstore.Tx) (json.RawMessage, error) {
		settled, err := jobs.Settled(ctx, tx, ref)
		if err != nil || settled != nil {
			return settled, err
		}
		_, err = changeOne(ctx, tx, j.Account, iccid, s.size, func(one *sim.SIM) (err error) {
			settled, err = change(one)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", noun, err)
		}
		return settled, jobs.Settle(ctx, tx, ref, settled)
	})
}
