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
type Orders struct {
	db   *sqlstore.DB
	size int // of a block
}

// NewOrders returns the store of what jobs do with SIMs.
func NewOrders(db *sqlstore.DB) *Orders { return &Orders{db: db, size: blockSize} }

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
) (settled json.RawMessage, err error) {
	ref := job.Ref{Account: j.Account, ID: j.ID}
	err = s.db.Write(ctx, "job "+j.ID+": settle", func(ctx context.Context, tx *sqlstore.Tx) error {
		settled, err = jobs.Settled(ctx, tx, ref)
		if err != nil || settled != nil {
			return err
		}
		_, err := changeOne(ctx, tx, j.Account, iccid, s.size, func(one *sim.SIM) (err error) {
			settled, err = change(one)
			return err
		})
		if err != nil {
			return fmt.Errorf("job %s: settle: %w", j.ID, err)
		}
		return jobs.Settle(ctx, tx, ref, settled)
	})
	if err != nil {
		return nil, err
	}
	return settled, nil
}
