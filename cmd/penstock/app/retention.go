package app

import (
	"context"
	"errors"
	"time"
)

// expireEvery is how often readings that sensors no longer keep are deleted. A
// reading outlives its sensor's retention_days by this much at most.
const expireEvery = time.Hour

// expire deletes expired readings, account after account: at the start, even if
// another gateway did so recently, since a gateway may never run for an hour, and
// then each hour. Accounts that one pass does not reach are next in the following.
func (d *Gateway) expire(ctx context.Context) {
	for start := true; start || pause(ctx, expireEvery); start = false {
		mine, err := d.records.Gateways.Turn(ctx, "expire readings", expireEvery/2)
		if err == nil && !mine && !start {
			continue
		}
		if err := d.expireReadings(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("old readings were not deleted, trying again in an hour", "error", err)
		}
	}
}

// expireReadings deletes expired readings of all accounts, unless the clock has jumped.
func (d *Gateway) expireReadings(ctx context.Context) error {
	if d.clock.jumps() {
		return nil
	}
	accounts, err := d.records.Accounts.Accounts(ctx)
	for _, a := range accounts {
		err = errors.Join(err, d.devices.Expire(ctx, a.ID))
	}
	return err
}
