package main

import (
	"context"
	"errors"
	"time"
)

// expireEvery is how often readings that sensors no longer keep are deleted. A
// reading outlives its sensor's retention_days by this much at most.
const expireEvery = time.Hour

// expire deletes what sensors no longer keep, account after account. What is
// not reached is reached the next time.
func (d *daemon) expire(ctx context.Context) {
	for pause(ctx, expireEvery) {
		if mine, err := d.back.records.Gateways.Turn(ctx, "expire readings", expireEvery/2); err == nil && !mine {
			continue
		}
		accounts, err := d.accounts.Accounts(ctx)
		for _, a := range accounts {
			err = errors.Join(err, d.readings.Expire(ctx, a.ID))
		}
		if err != nil && ctx.Err() == nil {
			d.log.Warn("old readings were not deleted, trying again in an hour", "error", err)
		}
	}
}
