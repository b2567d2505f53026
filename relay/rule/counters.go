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

// Stats counts what rules did since the start.
type Stats struct {
	Frames                               int64 // of accounts with rules
	Raised, Cleared, Repeated, Forwarded int64
	Failed                               int64 // frames at which an expression failed or an action was omitted
	Omitted                              int64 // actions beyond the limits
}

type counters struct {
	mu sync.Mutex
	Stats
}

// add counts what was decided and saved.
func (c *counters) add(d *pendingDecision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	raised, ended, repeated := int64(len(d.decision.Raised)), int64(len(d.decision.Cleared)), int64(d.repeated)
	c.Raised += raised
	c.Cleared += ended
	c.Repeated += repeated
	c.Omitted += int64(d.omitted)
	c.Forwarded += int64(len(d.fired)) - raised - ended - repeated
}

// Stats returns what rules did since the start.
func (s *Service) Stats() Stats {
	s.counted.mu.Lock()
	defer s.counted.mu.Unlock()
	stats := s.counted.Stats
	stats.Failed = s.failed.total.Load()
	return stats
}

// failures collects the faults of rules until they are saved.
type failures struct {
	mu    sync.Mutex
	rules map[iot.Ref]Failures
	total atomic.Int64
}

// maxReason is the most bytes of a reason that are kept.
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

func (f *failures) take() (failed []Failed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, counted := range f.rules {
		failed = append(failed, Failed{Account: key.Account, RuleID: key.ID, Failures: counted})
	}
	f.rules = nil
	return failed
}

// SaveFailures logs the rules that failed and saves that with them.
func (s *Service) SaveFailures(ctx context.Context) {
	failed := s.failed.take()
	if len(failed) == 0 {
		return
	}
	for _, f := range failed {
		s.o.Logger.WarnContext(ctx, "a rule failed", "account", f.Account, "rule", f.RuleID, "frames", f.Count, "error", f.Last)
	}
	if err := s.deps.Store.Fail(ctx, failed); err != nil {
		s.o.Logger.WarnContext(ctx, "failures of rules were not saved", "error", err)
	}
}

// limiter counts the deliveries that rules of accounts create in the present minute.
type limiter struct {
	mu      sync.Mutex
	minute  time.Time
	created map[relay.AccountID]int
}

// reserve returns how many of n deliveries an account may create, and in which minute.
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

// release returns deliveries that were reserved in a minute and not created. Those of an
// earlier minute no longer count.
func (l *limiter) release(acct relay.AccountID, n int, minute time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n > 0 && minute.Equal(l.minute) {
		l.created[acct] -= n
	}
}

// budget bounds the deliveries that rules of an account create for the frames that are
// evaluated together. It is used by one goroutine.
type budget struct {
	s      *Service
	acct   relay.AccountID
	frames map[string]int // deliveries that were created, by frame
	// What the present transaction creates, and how much of that is reserved in the minute
	// of the last reservation.
	pending  map[string]int
	reserved int
	minute   time.Time
	// resetDone is set if the limit of the minute did not allow deliveries that another minute
	// allows.
	resetDone bool
}

func (s *Service) newBudget(acct relay.AccountID) *budget {
	return &budget{s: s, acct: acct, frames: make(map[string]int), pending: make(map[string]int)}
}

// grant returns how many of the n deliveries of an occurrence may be created, and the
// reason why others may not.
func (b *budget) grant(o *Occurrence, n int) (granted int, reason error) {
	frame := cmp.Or(o.FrameKey(), o.AlarmID)
	limits := &b.s.o
	granted = max(0, min(n, limits.ActionsPerFrame-b.frames[frame]-b.pending[frame]))
	if granted < n {
		reason = fmt.Errorf("an action was not performed: the rules have more than %d for one frame", limits.ActionsPerFrame)
	}
	reserved, minute := b.s.limiter.reserve(b.acct, granted, limits.ActionsPerMinute, limits.Now())
	if reserved < granted {
		reason = fmt.Errorf("an action was not performed: the rules of the account have more than %d in a minute", limits.ActionsPerMinute)
		b.resetDone = b.resetDone || granted <= limits.ActionsPerMinute
	}
	if !minute.Equal(b.minute) {
		b.minute, b.reserved = minute, 0
	}
	b.pending[frame] += reserved
	b.reserved += reserved
	return reserved, reason
}

// rollback drops what was granted since the last commit.
func (b *budget) rollback() {
	b.s.limiter.release(b.acct, b.reserved, b.minute)
	b.reserved, b.resetDone = 0, false
	clear(b.pending)
}

// commit ends a transaction that created so many deliveries. Those that were there
// already do not count for the account.
func (b *budget) commit(created int) {
	b.s.limiter.release(b.acct, b.reserved-created, b.minute)
	b.reserved = 0
	for frame, n := range b.pending {
		b.frames[frame] += n
	}
	clear(b.pending)
}
