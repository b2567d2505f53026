package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/outbox"
)

// endedRetention is how long a delivery that arrived is kept, from its end,
// unless configured otherwise.
const endedRetention = 30 * 24 * time.Hour

// Outbox keeps deliveries; it is an outbox.Store.
type Outbox struct {
	db *DB

	create, finish, take, lease, move, replay, sweep *redis.Script
}

// Outbox returns the store of deliveries.
func (d *DB) Outbox() *Outbox {
	return &Outbox{
		db:     d,
		create: redis.NewScript(createSource), finish: redis.NewScript(finishSource),
		take: redis.NewScript(takeSource), lease: redis.NewScript(leaseSource), move: redis.NewScript(moveSource),
		replay: redis.NewScript(replaySource), sweep: redis.NewScript(sweepSource),
	}
}

// stateKeys returns the keys of the sets by state in the order the scripts have
// them: queued, retrying, delivered, simulated, dead.
func stateKeys(acct account.ID) []string {
	var keys []string
	for _, s := range outbox.States() {
		keys = append(keys, keyOutboxState(acct, s))
	}
	return keys
}

// Create saves new deliveries with a lease.
func (s *Outbox) Create(ctx context.Context, ds []outbox.Delivery, leaseUntil time.Time) ([]int, error) {
	if len(ds) == 0 {
		return nil, nil
	}
	of := groups(ds, func(d *outbox.Delivery) account.ID { return d.Account })
	var calls []call
	accounts := []any{"SADD", keyOutboxAccounts()}
	for _, places := range of {
		c, err := creating(ds, places, leaseUntil)
		if err != nil {
			return nil, err
		}
		calls, accounts = append(calls, c), append(accounts, ds[places[0]].Account.String())
	}
	first := []redis.Cmder{redis.NewCmd(ctx, accounts...)}
	out, err := s.db.eval(ctx, s.create, calls, append(first, s.byMessage(ctx, ds)...)...)
	if err != nil {
		return nil, wrap("deliveries: create", err)
	}
	var known []int
	for c, answer := range out {
		for k, result := range slice(answer.Val()) {
			switch i := of[c][k]; result {
			case int64(0):
				known = append(known, i)
			case int64(2):
				ds[i].Waits, ds[i].NextAttemptAt = outbox.WaitsForTurn, time.Time{}
			}
		}
	}
	return known, nil
}

// creating is the call that creates some deliveries of one account.
func creating(ds []outbox.Delivery, places []int, leaseUntil time.Time) (call, error) {
	acct := ds[places[0]].Account
	c := call{
		keys: []string{keyOutboxDue(acct), keyOutboxCreated(acct), keyOutboxState(acct, outbox.Queued)},
		args: []any{leaseUntil.UnixMilli()},
	}
	for _, i := range places {
		d := &ds[i]
		d.State, d.NextAttemptAt = outbox.Queued, leaseUntil
		static, err := encodeStatic(d)
		if err != nil {
			return c, fmt.Errorf("delivery %s: encode: %w", d.ID, err)
		}
		c.keys = append(c.keys, keyDelivery(acct, d.ID), keyOutboxOrder(acct, d.Lane()))
		c.args = append(c.args, d.ID, static, d.CreatedAt.UnixMilli(), lineOf(d))
	}
	return c, nil
}

// lineOf names the line of a delivery to an ordered endpoint.
func lineOf(d *outbox.Delivery) string {
	if d.Pace.Ordered {
		return d.Lane()
	}
	return ""
}

// indexes returns where the results equal n.
func indexes(cmds []*redis.Cmd, n int64) (at []int) {
	for i, c := range cmds {
		if v, _ := c.Int64(); v == n {
			at = append(at, i)
		}
	}
	return at
}

// Get loads one delivery.
func (s *Outbox) Get(ctx context.Context, acct account.ID, id string) (outbox.Delivery, error) {
	fields, err := s.db.rdb.HGetAll(ctx, keyDelivery(acct, id)).Result()
	if err == nil && len(fields) == 0 {
		err = redis.Nil
	}
	if err != nil {
		return outbox.Delivery{}, wrap("delivery "+id, err)
	}
	return decodeDelivery(fields)
}

// Finish records outcomes.
func (s *Outbox) Finish(ctx context.Context, os []outbox.Outcome) ([]outbox.Ref, error) {
	of := groups(os, func(o *outbox.Outcome) account.ID { return o.Account })
	calls := make([]call, 0, len(of))
	for _, places := range of {
		c, err := s.finishing(os, places)
		if err != nil {
			return nil, err
		}
		calls = append(calls, c)
	}
	out, err := s.db.eval(ctx, s.finish, calls)
	var turn []outbox.Ref
	for c, answer := range out {
		for _, id := range slice(answer.Val()) {
			turn = append(turn, outbox.Ref{Account: os[of[c][0]].Account, ID: fmt.Sprint(id)})
		}
	}
	return turn, wrap("deliveries: finish", err)
}

// finishing is the call that records some outcomes of one account.
func (s *Outbox) finishing(os []outbox.Outcome, places []int) (call, error) {
	acct := os[places[0]].Account
	c := call{
		keys: append([]string{keyOutboxDue(acct), keyOutboxLines(acct)}, stateKeys(acct)...),
		args: []any{keyDelivery(acct, ""), keyOutboxOrder(acct, "")},
	}
	for _, i := range places {
		o := &os[i]
		var attempt []byte
		if !o.Attempt.At.IsZero() {
			var err error
			if attempt, err = encodeRecord(o.Attempt); err != nil {
				return c, fmt.Errorf("delivery %s: encode: %w", o.ID, err)
			}
		}
		c.keys = append(c.keys, keyDelivery(acct, o.ID), keyOutboxHeld(acct, o.Endpoint))
		c.args = append(c.args,
			o.ID, attempt, o.Attempt.At.UnixNano(), string(o.State), o.Reason, millis(o.NextAttemptAt), flag(o.Uncounted),
			s.retentionOf(o.State).Milliseconds(), millis(o.HeldUntil), o.Endpoint)
	}
	return c, nil
}

// millis is a moment in a script; 0 is none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// retentionOf returns how long a delivery is kept once it is in a state; 0 is
// for ever.
func (s *Outbox) retentionOf(state outbox.State) time.Duration {
	switch {
	case state == outbox.Dead:
		return s.db.deadRetention
	case state.Ended():
		return s.db.retention
	}
	return 0
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Lease takes the right to make the next attempt.
func (s *Outbox) Lease(ctx context.Context, acct account.ID, id string, now, until time.Time) (outbox.Delivery, bool, error) {
	noun := "delivery " + id + ": lease"
	out, err := s.db.eval(ctx, s.lease, []call{{
		keys: []string{keyDelivery(acct, id), keyOutboxDue(acct)},
		args: []any{id, now.UnixMilli(), until.UnixMilli()},
	}})
	if err != nil {
		return outbox.Delivery{}, false, wrap(noun, err)
	}
	reply, err := out[0].Slice()
	if err != nil || len(reply) < 2 {
		return outbox.Delivery{}, false, relay.Errorf(relay.KindNotFound, "%s: no such delivery", noun)
	}
	fields := make(map[string]string, len(reply)/2)
	for i := 1; i+1 < len(reply); i += 2 {
		fields[fmt.Sprint(reply[i])] = fmt.Sprint(reply[i+1])
	}
	d, err := decodeDelivery(fields)
	return d, err == nil && reply[0] == int64(1), err
}

// Renew moves the end of leases.
func (s *Outbox) Renew(ctx context.Context, refs []outbox.Ref, until time.Time) error {
	return wrap("deliveries: renew", s.moveLeases(ctx, refs, until, true))
}

// Release gives leases back unused.
func (s *Outbox) Release(ctx context.Context, refs []outbox.Ref, due time.Time) error {
	return wrap("deliveries: release", s.moveLeases(ctx, refs, due, false))
}

func (s *Outbox) moveLeases(ctx context.Context, refs []outbox.Ref, to time.Time, leased bool) error {
	for chunk := range slices.Chunk(refs, chunkSize) {
		calls := make([]call, len(chunk))
		for i, r := range chunk {
			calls[i] = call{
				keys: []string{keyDelivery(r.Account, r.ID), keyOutboxDue(r.Account)},
				args: []any{r.ID, to.UnixMilli(), flag(leased)},
			}
		}
		if _, err := s.db.eval(ctx, s.move, calls); err != nil {
			return err
		}
	}
	return nil
}

// Replay puts ended deliveries back to queued.
func (s *Outbox) Replay(ctx context.Context, refs []outbox.Ref, now time.Time, includeDelivered bool) ([]outbox.Ref, error) {
	var changed []outbox.Ref
	for chunk := range slices.Chunk(refs, chunkSize) {
		calls := make([]call, len(chunk))
		for i, r := range chunk {
			calls[i] = call{
				keys: append([]string{keyDelivery(r.Account, r.ID), keyOutboxDue(r.Account)}, stateKeys(r.Account)...),
				args: []any{r.ID, now.UnixMilli(), flag(includeDelivered), keyOutboxOrder(r.Account, "")},
			}
		}
		out, err := s.db.eval(ctx, s.replay, calls)
		for _, i := range indexes(out, 1) {
			changed = append(changed, chunk[i])
		}
		if err != nil {
			return changed, wrap("deliveries: replay", err)
		}
	}
	return changed, nil
}

// accounts returns the accounts that have deliveries, in order.
func (s *Outbox) accounts(ctx context.Context) ([]account.ID, error) {
	members, err := s.db.rdb.SMembers(ctx, keyOutboxAccounts()).Result()
	if err != nil {
		return nil, err
	}
	ids := make([]account.ID, 0, len(members))
	for _, m := range members {
		n, err := strconv.ParseInt(m, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("account %q: %w", m, err)
		}
		ids = append(ids, account.ID(n))
	}
	slices.Sort(ids)
	return ids, nil
}
