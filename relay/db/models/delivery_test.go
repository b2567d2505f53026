package models_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/recordstest"
)

// modelDelivery is the model of a delivery.
type modelDelivery struct {
	State    outbox.State // empty: the delivery does not exist
	Due      float64      // -1 for none
	Leased   bool
	Tries    int
	Attempts []int64 // times in ms
}

func (m modelDelivery) String() string {
	if m.State == "" {
		return "none"
	}
	return fmt.Sprintf("%s, due %g, tries %d, attempts %v", m.State, m.Due, m.Tries, m.Attempts)
}

// modelDeliveries are the deliveries of the model.
type modelDeliveries [2]modelDelivery

func (m modelDeliveries) String() string { return m[0].String() + "; " + m[1].String() }

func deliveryRef(n int, acct relay.AccountID) outbox.Ref {
	return outbox.Ref{Account: acct, ID: fmt.Sprint("delivery-", n)}
}

func deliveryModel() machine[modelDeliveries] {
	return machine[modelDeliveries]{
		begin: func(context.Context, *recordstest.Records, relay.AccountID) (modelDeliveries, error) {
			return modelDeliveries{}, nil
		},
		clone: func(p modelDeliveries) modelDeliveries {
			for n := range p {
				p[n].Attempts = slices.Clone(p[n].Attempts)
			}
			return p
		},
		draw: drawDeliveryOp, read: readDeliveries, show: modelDeliveries.String,
	}
}

func drawDeliveryOp(t *rapid.T, s modelDeliveries, acct relay.AccountID, now float64) op[modelDeliveries] {
	n := rapid.IntRange(0, 1).Draw(t, "delivery")
	ref := deliveryRef(n, acct)
	switch rapid.SampledFrom([]string{"create", "lease", "lease", "finish", "finish", "renew", "release", "replay"}).Draw(t, "kind") {
	case "create":
		return newOp[modelDeliveries](
			"create "+ref.ID,
			func(s *modelDeliveries) string {
				if s[n].State != "" {
					return "exists"
				}
				s[n] = modelDelivery{State: outbox.Queued, Due: now + 10, Leased: true}
				return "new"
			},
			func(ctx context.Context, r *recordstest.Records) (string, error) {
				created, err := r.Deliveries.Create(ctx, []outbox.Delivery{{
					ID: ref.ID, Account: acct, Kind: outbox.KindRelay, MessageID: "m", CreatedAt: dbtest.TimeAt(now),
					Request: &outbox.Request{Method: "GET", URL: "https://example.com/"},
				}}, dbtest.TimeAt(now+10))
				return map[bool]string{true: "new", false: "exists"}[len(created) > 0], err
			},
		)
	case "lease":
		return leaseDelivery(n, ref, now)
	case "finish":
		return finishDelivery(t, s, n, ref, now)
	case "replay":
		return replayDelivery(n, ref, now, rapid.Bool().Draw(t, "also delivered"))
	case "renew":
		return moveDeliveryLease(t, s, n, ref, now, true)
	}
	return moveDeliveryLease(t, s, n, ref, now, false)
}

func leaseDelivery(n int, ref outbox.Ref, now float64) op[modelDeliveries] {
	return newOp[modelDeliveries](
		"lease "+ref.ID,
		func(s *modelDeliveries) string {
			p := &s[n]
			leased := p.State != "" && p.Due >= 0 && p.Due <= now
			if leased {
				p.Due, p.Leased = now+10, true
			}
			return fmt.Sprint(leased)
		},
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			leased, err := r.Deliveries.LeaseDue(ctx, []outbox.Ref{ref}, dbtest.TimeAt(now), dbtest.TimeAt(now+10))
			return fmt.Sprint(len(leased) == 1), err
		},
	)
}

// moveDeliveryLease renews or releases the current lease or an older one.
func moveDeliveryLease(t *rapid.T, s modelDeliveries, n int, ref outbox.Ref, now float64, renew bool) op[modelDeliveries] {
	end := max(s[n].Due, 0) - float64(rapid.IntRange(0, 1).Draw(t, "older"))
	newEnd := now
	if renew {
		newEnd = now + 10
	}
	return newOp[modelDeliveries](
		fmt.Sprintf("move the lease of %s that ends at %g to %g, renew %v", ref.ID, end, newEnd, renew),
		func(s *modelDeliveries) string {
			p := &s[n]
			moved := p.State != "" && p.Leased && p.Due <= end
			if moved {
				p.Due, p.Leased = newEnd, renew
			}
			return fmt.Sprint(renew && moved)
		},
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			ls := []outbox.Lease{{Ref: ref, End: dbtest.TimeAt(end)}}
			if !renew {
				return "false", r.Deliveries.Release(ctx, ls, dbtest.TimeAt(newEnd))
			}
			moved, err := r.Deliveries.Renew(ctx, ls, dbtest.TimeAt(newEnd))
			return fmt.Sprint(len(moved) == 1), err
		},
	)
}

// finishDelivery records a new attempt or repeats a recorded one.
func finishDelivery(t *rapid.T, s modelDeliveries, n int, ref outbox.Ref, now float64) op[modelDeliveries] {
	attemptedAt := int64(now)*1000 + rapid.Int64Range(0, 999).Draw(t, "milliseconds")
	if recorded := s[n].Attempts; len(recorded) > 0 && rapid.Bool().Draw(t, "again") {
		attemptedAt = rapid.SampledFrom(recorded).Draw(t, "attempt")
	}
	o := outbox.Outcome{
		ID: ref.ID, Account: ref.Account, Attempt: outbox.Attempt{At: dbtest.TimeAt(0).Add(time.Duration(attemptedAt) * time.Millisecond), Duration: time.Second, Status: 200},
		State: rapid.SampledFrom([]outbox.State{outbox.Delivered, outbox.Retrying, outbox.Dead}).Draw(t, "outcome"),
	}
	due := -1.0
	if o.State != outbox.Delivered {
		o.Reason = fmt.Sprintf("refused at %d", attemptedAt)
	}
	if o.State == outbox.Retrying {
		due = now + 5
		o.NextAttemptAt = dbtest.TimeAt(due)
	}
	return newOp[modelDeliveries](
		fmt.Sprintf("finish %s, attempt of %d: %s", ref.ID, attemptedAt, o.State),
		func(s *modelDeliveries) string {
			p := &s[n]
			if p.State == "" || slices.Contains(p.Attempts, attemptedAt) {
				return ""
			}
			p.Attempts = append(p.Attempts, attemptedAt)
			slices.Sort(p.Attempts)
			if !p.State.Ended() {
				p.State, p.Due, p.Leased, p.Tries = o.State, due, false, p.Tries+1
			}
			return ""
		},
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			_, err := r.Deliveries.Finish(ctx, []outbox.Outcome{o})
			return "", err
		},
	)
}

func replayDelivery(n int, ref outbox.Ref, now float64, delivered bool) op[modelDeliveries] {
	return newOp[modelDeliveries](
		fmt.Sprintf("replay %s, also delivered %v", ref.ID, delivered),
		func(s *modelDeliveries) string {
			p := &s[n]
			changed := p.State == outbox.Dead || delivered && p.State == outbox.Delivered
			if changed {
				p.State, p.Due, p.Leased, p.Tries = outbox.Queued, now, false, 0
			}
			return fmt.Sprint(changed)
		},
		func(ctx context.Context, r *recordstest.Records) (string, error) {
			changed, err := r.Deliveries.Replay(ctx, []outbox.Ref{ref}, dbtest.TimeAt(now), delivered)
			return fmt.Sprint(len(changed) == 1), err
		},
	)
}

func readDeliveries(ctx context.Context, r *recordstest.Records, _ modelDeliveries, acct relay.AccountID) (string, error) {
	var words []string
	for n := range 2 {
		p := modelDelivery{Due: -1}
		d, err := r.Deliveries.Get(ctx, acct, deliveryRef(n, acct).ID)
		if err != nil && relay.KindOf(err) != relay.KindNotFound {
			return "", err
		}
		if err == nil {
			p.State, p.Tries = d.State, d.Tries
			if !d.NextAttemptAt.IsZero() {
				p.Due = d.NextAttemptAt.Sub(dbtest.TimeAt(0)).Seconds()
			}
			for _, a := range d.Attempts {
				p.Attempts = append(p.Attempts, a.At.Sub(dbtest.TimeAt(0)).Milliseconds())
			}
		}
		words = append(words, p.String())
	}
	return strings.Join(words, "; "), nil
}
