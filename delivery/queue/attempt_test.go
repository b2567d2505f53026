package queue

import (
	"context"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/attempt"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestClassifyReturnsTheOutcome(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	q := &Queue{attemptCtx: ctx, opts: withDefaults(Options{}), deps: withDefaultDeps(Deps{
		Schedule: delivery.Schedule{10 * time.Second, 20 * time.Second},
		Now:      func() time.Time { return now }, Rand: func() float64 { return 0.5 },
	})}
	cases := []struct {
		name      string
		tries     int
		verdict   delivery.Verdict
		simulated bool
		state     outbox.State
		wait      time.Duration
		uncounted bool
	}{
		{"delivered", 0, delivery.Verdict{Class: delivery.Delivered}, false, outbox.Delivered, 0, false},
		{"simulated", 0, delivery.Verdict{Class: delivery.Delivered}, true, outbox.Simulated, 0, false},
		{"dead at once", 0, delivery.Verdict{Class: delivery.Dead}, false, outbox.Dead, 0, false},
		{"the first retry", 0, delivery.Verdict{Class: delivery.Retry}, false, outbox.Retrying, 10 * time.Second, false},
		{"the second retry", 1, delivery.Verdict{Class: delivery.Retry}, false, outbox.Retrying, 20 * time.Second, false},
		{"a Retry-After longer than the delay", 1, delivery.Verdict{Class: delivery.Retry, RetryAfter: time.Minute}, false, outbox.Retrying, time.Minute, false},
		{"no attempt left", 2, delivery.Verdict{Class: delivery.Retry}, false, outbox.Dead, 0, false},
		{"an internal fault when no attempt is left", 9, delivery.Verdict{Class: delivery.Fault}, false, outbox.Retrying, 10 * time.Second, true},
		{"an SMS without credit", 9, delivery.Verdict{Class: delivery.Fault, RetryAfter: time.Minute}, false, outbox.Retrying, time.Minute, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.verdict.Reason = "refused"
			o := q.outcomeOf(&outbox.Delivery{ID: "a", Tries: c.tries}, permitAttempt, attempt.Result{Verdict: c.verdict, Simulated: c.simulated})
			var want time.Time
			if c.wait > 0 {
				want = now.Add(c.wait)
			}
			got := outbox.Outcome{State: o.State, NextAttemptAt: o.NextAttemptAt, Uncounted: o.Uncounted}
			relaytest.Equal(t, "the outcome", got, outbox.Outcome{State: c.state, NextAttemptAt: want, Uncounted: c.uncounted})
		})
	}
}

func TestAParkedDeliveryKeepsTheReasonOfItsLastAttempt(t *testing.T) {
	for _, tc := range []struct{ name, reason, want string }{
		{"no attempt", "", "its endpoint fails: answered 503"},
		{"no attempt, parked before", "its endpoint fails: answered 500", "its endpoint fails: answered 503"},
		{"a failed attempt", "timeout after 10 s", "timeout after 10 s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			relaytest.Equal(t, "the reason", parkedReason(&outbox.Delivery{Reason: tc.reason}, "answered 503"), tc.want)
		})
	}
}
