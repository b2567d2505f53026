package httpd

import (
	"container/list"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
)

// slots limits the concurrent requests of one kind of traffic and the memory of their bodies. It is
// safe for concurrent use.
//
// If no slot is free, a request waits for a short time. Accounts with waiting requests get free
// slots in turns, regardless of the number of their waiting requests, and an account never has
// more than its share. A flood of requests from one account thus delays only that account; a
// request of another account waits for at most one turn.
type slots struct {
	bound RequestLimit
	share RequestLimit // of one account
	wait  time.Duration

	mu       sync.Mutex
	used     int
	waiting  int
	bytes    int64
	accounts map[relay.AccountID]*tenant // the accounts with requests
	turns    list.List                   // of *tenant: accounts with waiting requests, in the order of their turns
	refused  map[reason]uint64
}

// tenant is an account with its slots and bytes.
type tenant struct {
	used    int
	bytes   int64
	waiting list.List     // of chan struct{}, closed when the request gets a slot
	turn    *list.Element // of slots.turns; nil without waiting requests
}

// reason is the reason for the refusal of a request, as in the label of the metric.
type reason string

const (
	reasonRequests     reason = "requests"      // every slot is taken
	reasonAccount      reason = "account"       // the account uses its share
	reasonBytes        reason = "bytes"         // the bodies use their memory
	reasonAccountBytes reason = "account_bytes" // the bodies of the account use its share of the memory
	reasonFull         reason = "full"          // every connection is in use
	reasonEvicted      reason = "evicted"       // the connection waited for its client longest
)

// newSlots returns slots with the limits b. An account may use the given percentage of each limit.
func newSlots(b RequestLimit, percent int, wait time.Duration) *slots {
	return &slots{
		bound: b, wait: wait, accounts: make(map[relay.AccountID]*tenant), refused: make(map[reason]uint64),
		share: RequestLimit{Requests: max(1, b.Requests*percent/100), Bytes: max(1, b.Bytes*int64(percent)/100)},
	}
}

// acquire waits for a slot for a request of an account. It returns the reason for a refusal, or ""
// for success.
func (s *slots) acquire(acct relay.AccountID) reason {
	s.mu.Lock()
	t := s.tenant(acct)
	if s.hasFree(t) {
		s.used++
		t.used++
		s.mu.Unlock()
		return ""
	}
	granted := make(chan struct{})
	place := t.waiting.PushBack(granted)
	if t.turn == nil {
		t.turn = s.turns.PushBack(t)
	}
	s.waiting++
	s.mu.Unlock()
	timer := time.NewTimer(s.wait)
	defer timer.Stop()
	select {
	case <-granted:
		return ""
	case <-timer.C:
		return s.leave(acct, t, place, granted)
	}
}

// leave ends the wait of a request, unless the request has just received a slot.
func (s *slots) leave(acct relay.AccountID, t *tenant, place *list.Element, granted <-chan struct{}) reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-granted:
		return ""
	default:
	}
	cause := reasonRequests
	if t.used >= s.share.Requests {
		cause = reasonAccount
	}
	s.stopWaiting(t, place)
	s.forget(acct, t)
	s.refused[cause]++
	return cause
}

// release frees a slot, or passes it to a waiting request.
func (s *slots) release(acct relay.AccountID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenant(acct)
	s.used--
	t.used--
	for turn := s.turns.Front(); turn != nil; turn = turn.Next() {
		candidate, ok := turn.Value.(*tenant)
		if !ok || !s.hasFree(candidate) {
			continue
		}
		s.turns.MoveToBack(turn)
		place := candidate.waiting.Front() // the request of the account that has waited longest
		s.used++
		candidate.used++
		if granted, ok := place.Value.(chan struct{}); ok {
			close(granted)
		}
		s.stopWaiting(candidate, place)
		break
	}
	s.forget(acct, t)
}

func (s *slots) stopWaiting(t *tenant, place *list.Element) {
	t.waiting.Remove(place)
	s.waiting--
	if t.waiting.Len() == 0 {
		s.turns.Remove(t.turn)
		t.turn = nil
	}
}

// reserve reserves n bytes for a body of an account. It returns the reason for a refusal, or "" for
// success.
func (s *slots) reserve(acct relay.AccountID, n int64) reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenant(acct)
	var cause reason
	switch {
	case s.bytes+n > s.bound.Bytes:
		cause = reasonBytes
	case t.bytes+n > s.share.Bytes:
		cause = reasonAccountBytes
	default:
		s.bytes += n
		t.bytes += n
		return ""
	}
	s.forget(acct, t)
	s.refused[cause]++
	return cause
}

func (s *slots) unreserve(acct relay.AccountID, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenant(acct)
	s.bytes -= n
	t.bytes -= n
	s.forget(acct, t)
}

// hasFree reports whether a slot is free for an account.
func (s *slots) hasFree(t *tenant) bool {
	return s.used < s.bound.Requests && t.used < s.share.Requests
}

func (s *slots) tenant(acct relay.AccountID) *tenant {
	t := s.accounts[acct]
	if t == nil {
		t = new(tenant)
		s.accounts[acct] = t
	}
	return t
}

// forget removes an account without requests.
func (s *slots) forget(acct relay.AccountID, t *tenant) {
	if t.used == 0 && t.bytes == 0 && t.waiting.Len() == 0 {
		delete(s.accounts, acct)
	}
}
