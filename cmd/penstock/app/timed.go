package app

import (
	"context"
	"time"

	"github.com/penstock/penstock/delivery/email"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
)

// observer is called with the time that an operation of a back end took.
type observer func(operation string, took time.Duration)

// timedReadings measures the calls of a store of readings.
type timedReadings struct {
	iot.ReadingStore
	observe observer
}

func (t timedReadings) Write(ctx context.Context, b iot.Batch) ([]iot.Refused, error) {
	defer t.since("write", time.Now())
	return t.ReadingStore.Write(ctx, b)
}

func (t timedReadings) Readings(ctx context.Context, q iot.Query) ([]iot.Point, error) {
	defer t.since("readings", time.Now())
	return t.ReadingStore.Readings(ctx, q)
}

func (t timedReadings) Aggregate(ctx context.Context, q iot.AggregateQuery) ([]iot.Bucket, error) {
	defer t.since("aggregate", time.Now())
	return t.ReadingStore.Aggregate(ctx, q)
}

func (t timedReadings) Forget(ctx context.Context, acct relay.AccountID, old []iot.Expired) error {
	defer t.since("forget", time.Now())
	return t.ReadingStore.Forget(ctx, acct, old)
}

func (t timedReadings) Latest(ctx context.Context, acct relay.AccountID, deviceID string, types []string) ([]iot.Point, error) {
	defer t.since("latest", time.Now())
	return t.ReadingStore.Latest(ctx, acct, deviceID, types)
}

func (t timedReadings) LastStored(ctx context.Context, acct relay.AccountID, deviceIDs []string) (map[string]time.Time, error) {
	defer t.since("last_stored", time.Now())
	return t.ReadingStore.LastStored(ctx, acct, deviceIDs)
}

func (t timedReadings) since(operation string, began time.Time) {
	t.observe(operation, time.Since(began))
}

// timedMail measures the mails.
type timedMail struct {
	mailer
	observe observer
}

// Send implements mailer.
func (t timedMail) Send(ctx context.Context, m outbox.Mail) (email.Result, error) {
	began := time.Now()
	defer func() { t.observe("send", time.Since(began)) }()
	return t.mailer.Send(ctx, m)
}
