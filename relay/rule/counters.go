package rule

import (
	"context"
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
