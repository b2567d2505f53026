package queue

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/outbox"
)

// feedAtOnce is how many deliveries of a line are leased in one round trip, and
// feedMost how many of one line in one pass, so that no line waits long behind
// another.
const (
	feedAtOnce = 200
	feedMost   = 2000
)

// tend shares the breakers' states and sees to what waits for them.
func (q *Queue) tend(ctx context.Context) {
	if err := q.breakers.share(ctx); err != nil {
		if ctx.Err() == nil {
			q.deps.Logger.WarnContext(ctx, "breakers are not shared", "error", err)
		}
		return
	}
	lines, err := q.deps.Store.Held(ctx)
	if err != nil {
		if ctx.Err() == nil {
			q.deps.Logger.WarnContext(ctx, "what waits for breakers is not known", "error", err)
		}
		return
	}
	q.breakers.forget(lines)
	held := 0
	for _, line := range lines {
		held += line.Count
		q.tendLine(ctx, line)
	}
	q.held.Store(int64(held))
}

// tendLine takes from a line what need not wait: all of it once the breaker is
// closed; while it is open those whose time is up, and one as a probe.
func (q *Queue) tendLine(ctx context.Context, line outbox.Line) {
	now := q.deps.Now()
	open, due := q.breakers.state(line.Endpoint)
	if !open {
		q.feed(ctx, line, feedMost, time.Time{})
		return
	}
	if !line.First.After(now) {
		q.feed(ctx, line, feedMost, now)
	}
	if due {
		q.feed(ctx, line, 1, time.Time{})
	}
}

// feed leases up to n deliveries of a line and attempts them. What there is no
// place for comes due later.
func (q *Queue) feed(ctx context.Context, line outbox.Line, n int, before time.Time) {
	for n > 0 {
		now := q.deps.Now()
		most := min(n, feedAtOnce)
		ds, err := q.deps.Store.Take(ctx, line, most, before, now.Add(q.opts.Lease))
		if err != nil {
			return // those it took come due when their lease ends
		}
		var back []outbox.Ref
		for i := range ds {
			it := &item{d: ds[i], lease: now.Add(q.opts.Lease)}
			if q.flight.admit(it) != taken {
				back = append(back, it.ref())
			}
		}
		if len(back) > 0 {
			q.giveBack(back, now.Add(q.flight.later(&ds[0])))
			return
		}
		if len(ds) < most {
			return
		}
		n -= len(ds)
	}
}
