package iot

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
)

// Limits on the decoding time of one batch: accountTime is the time of one account
// after which its frames wait for those of other accounts, batchTime the total
// after which waiting frames are deferred. A running call is not interrupted.
const (
	accountTime = 100 * time.Millisecond
	batchTime   = time.Second
)

// scheduler shares the decoding time of one batch among accounts and devices.
type scheduler struct {
	spent     map[relay.AccountID]time.Duration
	total     time.Duration
	queues    []*accountQueue
	byAccount map[relay.AccountID]*accountQueue
}

// accountQueue holds the waiting frames of an account by device, which take turns:
// each device's first frame comes before any device's second.
type accountQueue struct {
	acct    relay.AccountID
	devices [][]*work
	index   map[*cachedDevice]int
}

func newScheduler() *scheduler {
	return &scheduler{spent: make(map[relay.AccountID]time.Duration, 1)}
}

// enqueue queues a frame that must wait, and reports whether it does: its codec is
// slow, or its account or the batch has used up its time.
func (s *scheduler) enqueue(w *work) bool {
	if s.spent[w.Account] < accountTime && s.total < batchTime && !w.device.decoder.program.slow() {
		return false
	}
	q := s.byAccount[w.Account]
	if q == nil {
		if s.byAccount == nil {
			s.byAccount = make(map[relay.AccountID]*accountQueue)
		}
		q = &accountQueue{acct: w.Account, index: make(map[*cachedDevice]int)}
		s.byAccount[w.Account], s.queues = q, append(s.queues, q)
	}
	i, found := q.index[w.device]
	if !found {
		i = len(q.devices)
		q.index[w.device], q.devices = i, append(q.devices, nil)
	}
	q.devices[i] = append(q.devices[i], w)
	return true
}

func (s *scheduler) add(w *work, took time.Duration) {
	s.spent[w.Account] += took
	s.total += took
}

// budget is the time that is left before frames of the account must wait; 0 means no limit.
func (s *scheduler) budget(w *work) time.Duration {
	if w.NoDefer {
		return 0
	}
	return max(time.Nanosecond, min(accountTime-s.spent[w.Account], batchTime-s.total))
}

// next removes the next frame from the queues: that of the device waiting longest,
// in the account that has used the least time. It returns nil if none waits.
func (s *scheduler) next() *work {
	if len(s.queues) == 0 {
		return nil
	}
	least := 0
	for i, q := range s.queues {
		if s.spent[q.acct] < s.spent[s.queues[least].acct] {
			least = i
		}
	}
	q := s.queues[least]
	frames := q.devices[0]
	if q.devices = q.devices[1:]; len(frames) > 1 {
		q.devices = append(q.devices, frames[1:])
	}
	if len(q.devices) == 0 {
		s.queues = append(s.queues[:least:least], s.queues[least+1:]...)
	}
	return frames[0]
}

// decodeQueued decodes queued frames until the time of the batch is over, and
// defers the others.
func (s *Service) decodeQueued(ctx context.Context, t *scheduler) error {
	for t.total < batchTime {
		w := t.next()
		if w == nil {
			return nil
		}
		if err := s.decodeFrame(ctx, t, w, nil); err != nil {
			return err
		}
	}
	for w := t.next(); w != nil; w = t.next() {
		w.out.Deferred = true
	}
	return nil
}
