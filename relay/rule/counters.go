package rule

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// Stats counts the results of rules since the start.
type Stats struct {
	Frames                               int64 // frames of accounts with rules
	Raised, Cleared, Repeated, Forwarded int64
	Failed                               int64 // failures of rules, see Failures
	Omitted                              int64 // actions beyond the limits
}

type counters struct {
	mu sync.Mutex
	Stats
}

// add counts a saved decision.
func (c *counters) add(d *decisionDraft) {
	c.mu.Lock()
	defer c.mu.Unlock()
	raised, cleared, repeated := int64(len(d.decision.Raised)), int64(len(d.decision.Cleared)), int64(d.repeated)
	c.Raised += raised
	c.Cleared += cleared
	c.Repeated += repeated
	c.Omitted += int64(d.omitted)
	c.Forwarded += int64(len(d.firings)) - raised - cleared - repeated
}

// Stats returns the counts since the start.
func (s *Service) Stats() Stats {
	s.counters.mu.Lock()
	defer s.counters.mu.Unlock()
	stats := s.counters.Stats
	stats.Failed = s.failures.total.Load()
	return stats
}

// failures collects the failures of rules until they are saved.
type failures struct {
	mu    sync.Mutex
	rules map[iot.Ref]Failures
	total atomic.Int64
}

// maxReason is the largest length of a stored reason, in bytes.
const maxReason = 500

func (f *failures) add(acct relay.AccountID, ruleID string, err error, now time.Time) {
	f.total.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rules == nil {
		f.rules = make(map[iot.Ref]Failures)
	}
	key := iot.Ref{Account: acct, ID: ruleID}
	reason := err.Error()
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	f.rules[key] = Failures{Count: f.rules[key].Count + 1, LastAt: now.UTC(), Last: reason}
}

// SaveFailures logs and saves the failures of rules since the last call.
func (s *Service) SaveFailures(ctx context.Context) {
	s.failures.mu.Lock()
	collected := s.failures.rules
	s.failures.rules = nil
	s.failures.mu.Unlock()
	if len(collected) == 0 {
		return
	}
	for ref, f := range collected {
		s.o.Logger.WarnContext(ctx, "rule failed", "account", ref.Account, "rule", ref.ID, "frames", f.Count, "error", f.Last)
	}
	if err := s.deps.Store.AddFailures(ctx, collected); err != nil {
		s.o.Logger.WarnContext(ctx, "cannot save failures of rules", "error", err)
	}
}

// limiter counts the deliveries that the rules of each account create in the current minute.
type limiter struct {
	mu      sync.Mutex
	minute  time.Time
	created map[relay.AccountID]int
}

// reserve reserves up to n deliveries of an account in the current minute. It returns the reserved
// number and the minute.
func (l *limiter) reserve(acct relay.AccountID, n, limit int, now time.Time) (reserved int, minute time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if minute = now.Truncate(time.Minute); !minute.Equal(l.minute) {
		l.minute, l.created = minute, make(map[relay.AccountID]int)
	}
	reserved = max(0, min(n, limit-l.created[acct]))
	l.created[acct] += reserved
	return reserved, minute
}

// release releases deliveries that were reserved in a minute but not created.
func (l *limiter) release(acct relay.AccountID, n int, minute time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n > 0 && minute.Equal(l.minute) {
		l.created[acct] -= n
	}
}

// budget limits the deliveries that the rules of an account create for each frame and in each minute.
// Not safe for concurrent use.
type budget struct {
	s      *Service
	acct   relay.AccountID
	frames map[string]int // committed deliveries by frame
	// pending counts the deliveries of the current transaction by frame. reserved is the number of
	// these deliveries that the limiter reserved in minute.
	pending  map[string]int
	reserved int
	minute   time.Time
	// deferrable is set if a later minute may grant deliveries that were refused.
	deferrable bool
}

func (s *Service) newBudget(acct relay.AccountID) *budget {
	return &budget{s: s, acct: acct, frames: make(map[string]int), pending: make(map[string]int)}
}

// grant returns the number of deliveries of an occurrence that may be created, at most n, and the
// reason if it is less than n.
func (b *budget) grant(o *Occurrence, n int) (granted int, reason error) {
	frame := cmp.Or(o.FrameKey(), o.AlarmID)
	limits := &b.s.o
	granted = max(0, min(n, limits.ActionsPerFrame-b.frames[frame]-b.pending[frame]))
	if granted < n {
		reason = fmt.Errorf("an action was not performed: the rules have more than %d actions for one frame", limits.ActionsPerFrame)
	}
	reserved, minute := b.s.limiter.reserve(b.acct, granted, limits.ActionsPerMinute, limits.Now())
	if reserved < granted {
		reason = fmt.Errorf("an action was not performed: the rules of the account have more than %d actions in a minute", limits.ActionsPerMinute)
		b.deferrable = b.deferrable || granted <= limits.ActionsPerMinute
	}
	if !minute.Equal(b.minute) {
		b.minute, b.reserved = minute, 0
	}
	b.pending[frame] += reserved
	b.reserved += reserved
	return reserved, reason
}

// rollback releases the deliveries granted since the last commit.
func (b *budget) rollback() {
	b.s.limiter.release(b.acct, b.reserved, b.minute)
	b.reserved, b.deferrable = 0, false
	clear(b.pending)
}

// commit ends a transaction. created is the number of its new deliveries. Deliveries that already
// existed do not count toward the limit of the minute.
func (b *budget) commit(created int) {
	b.s.limiter.release(b.acct, b.reserved-created, b.minute)
	b.reserved = 0
	for frame, n := range b.pending {
		b.frames[frame] += n
	}
	clear(b.pending)
}
