package submit

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/relaytest"
)

// store is a Store and a Reporter in memory.
type store struct {
	mu       sync.Mutex
	messages map[message.Ref]*message.Message
	dueAt    map[message.Ref]time.Time // by message; the end of the lease of a leased message
	down     bool
	latency  time.Duration // of MarkSending and Settle
	// loseMarking makes the next MarkSending succeed, but return an error.
	loseMarking bool
	// loseRenewal makes the next Renew succeed, but return an error.
	loseRenewal bool
	// onReports is called once, after Settle and before the parts are counted as finished.
	onReports  func()
	carrierIDs []message.CarrierID
	reported   []string // id and first state of each reported message
	refunds    int
	markings   int // calls of MarkSending
	settles    int // calls of Settle
	leased     int // messages returned by LeaseDue
}

func newStore() *store {
	return &store{messages: make(map[message.Ref]*message.Message), dueAt: make(map[message.Ref]time.Time)}
}

// lock locks the store, unless it is down.
func (s *store) lock() error {
	s.mu.Lock()
	if s.down {
		s.mu.Unlock()
		return relay.Errorf(relay.KindUnavailable, "down")
	}
	return nil
}

func (s *store) LeaseDue(_ context.Context, now, until time.Time, limit int) (leased []message.Message, err error) {
	if err := s.lock(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, m := range s.sortedByID() {
		if due, waits := s.dueAt[m.Ref()]; waits && !due.After(now) && len(leased) < limit {
			s.dueAt[m.Ref()] = until
			s.leased++
			leased = append(leased, clone(m))
		}
	}
	return leased, nil
}

func (s *store) sortedByID() (list []*message.Message) {
	for _, m := range s.messages {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b *message.Message) int { return int(a.ID - b.ID) })
	return list
}

func clone(m *message.Message) message.Message {
	result := *m
	result.Parts = slices.Clone(m.Parts)
	return result
}

func (s *store) MarkSending(_ context.Context, parts []message.SendingParts) ([][]int, error) {
	time.Sleep(s.latency)
	if err := s.lock(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	s.markings++
	marked := make([][]int, len(parts))
	for i, b := range parts {
		m := s.messages[b.Ref]
		for _, n := range b.Parts {
			p := &m.Parts[n]
			if p.State == message.Pending || p.State == message.Sending && b.AlsoSending {
				p.State, p.Carrier = message.Sending, b.Carrier
				s.dueAt[b.Ref] = b.LeaseEnd
				marked[i] = append(marked[i], n)
			}
		}
	}
	if s.loseMarking {
		s.loseMarking = false
		return nil, relay.Errorf(relay.KindUnavailable, "the response is lost")
	}
	return marked, nil
}

// dispatch dispatches messages with the end of the lease that the store has for the first one.
func (s *store) dispatch(sub *Submitter, ms ...message.Message) { sub.Dispatch(ms, s.due(ms[0].ID)) }

func (s *store) Settle(_ context.Context, outcomes []message.Outcome) (settled []message.Message, err error) {
	time.Sleep(s.latency)
	if err := s.lock(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	s.settles++
	for _, o := range outcomes {
		m := s.messages[o.PartRef.Ref]
		p := &m.Parts[o.Part]
		if o.CarrierID != "" {
			p.CarrierID = o.CarrierID
		}
		if !slices.Contains(o.State.From(), p.State) {
			continue
		}
		p.State, p.Reason = o.State, o.Reason
		if o.Refund {
			s.refunds++
		}
		if o.State == message.Pending {
			p.ScheduledAt = o.RetryAt
		}
		if o.Resent {
			p.ResentAt = o.At
		}
		s.setDue(m, o.At)
		settled = append(settled, clone(m))
	}
	return settled, nil
}

// setDue sets the time when a message is due next, or removes it if no part is pending.
func (s *store) setDue(m *message.Message, now time.Time) {
	dueAt := time.Time{}
	_, leased := s.dueAt[m.Ref()]
	for _, p := range m.Parts {
		if leased && (p.State == message.Sending || p.State == message.Pending && !p.ScheduledAt.After(now)) {
			return
		}
		if p.State == message.Pending && (dueAt.IsZero() || p.ScheduledAt.Before(dueAt)) {
			dueAt = p.ScheduledAt
		}
	}
	if s.dueAt[m.Ref()] = dueAt; dueAt.IsZero() {
		delete(s.dueAt, m.Ref())
	}
}

func (s *store) Renew(_ context.Context, ls []message.Lease, until time.Time) (moved []message.Ref, err error) {
	if err := s.lock(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, l := range ls {
		if due, waits := s.dueAt[l.Ref]; waits && !due.After(l.End) {
			s.dueAt[l.Ref] = until
			moved = append(moved, l.Ref)
		}
	}
	if s.loseRenewal {
		s.loseRenewal = false
		return nil, relay.Errorf(relay.KindUnavailable, "the response is lost")
	}
	return moved, nil
}

func (s *store) Release(ctx context.Context, ls []message.Lease, due time.Time) error {
	_, err := s.Renew(ctx, ls, due)
	return err
}

func (s *store) SaveCarrierIDs(_ context.Context, ids []message.CarrierID) error {
	if err := s.lock(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.carrierIDs = append(s.carrierIDs, ids...)
	return nil
}

func (s *store) SendReports(_ context.Context, ms []message.Message) error {
	if f := s.onReports; f != nil {
		s.onReports = nil
		f()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range ms {
		s.reported = append(s.reported, fmt.Sprint(m.ID, " ", m.Parts[0].State))
	}
	return nil
}

// change calls f while the store is locked.
func (s *store) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// states returns the states of a message's parts.
func (s *store) states(id message.ID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var states []string
	for _, p := range s.messages[message.Ref{Account: 7, ID: id}].Parts {
		states = append(states, string(p.State))
	}
	return strings.Join(states, " ")
}

func (s *store) part(id message.ID, n int) message.Part {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.messages[message.Ref{Account: 7, ID: id}].Parts[n]
}

// counts are the calls and the writes of a store.
type counts struct {
	carrierIDs                 []message.CarrierID
	reported                   []string
	refunds, markings, settles int
}

func (s *store) count() counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return counts{slices.Clone(s.carrierIDs), slices.Clone(s.reported), s.refunds, s.markings, s.settles}
}

func (s *store) due(id message.ID) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dueAt[message.Ref{Account: 7, ID: id}]
}

// save saves a message with parts. due is the time when the message is due: now, or the end of
// its lease.
func (s *store) save(id message.ID, number string, parts int, due time.Time) message.Message {
	m := &message.Message{ID: id, Account: 7, Destination: number, Coding: message.GSM, ReceivedAt: time.Now(), ScheduledFor: time.Now()}
	for range parts {
		m.Parts = append(m.Parts, message.Part{State: message.Pending, ScheduledAt: time.Now(), Text: "x", Data: []byte("x")})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages[m.Ref()], s.dueAt[m.Ref()] = m, due
	return clone(m)
}

// network is a carrier that records submissions. The test sets answer or calls complete.
type network struct {
	mu           sync.Mutex
	ids          []string // of the submissions
	times        []time.Time
	unanswered   map[string]func(carrier.Result) // by id of the submission
	peakInFlight int
	answer       func(s carrier.Submission) carrier.Result // nil if the test calls complete
	notReady     bool
}

func (n *network) Ready() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.notReady
}

func (n *network) Submit(_ context.Context, s carrier.Submission, done func(carrier.Result)) {
	n.mu.Lock()
	n.ids, n.times = append(n.ids, s.ID), append(n.times, time.Now())
	if n.unanswered == nil {
		n.unanswered = make(map[string]func(carrier.Result))
	}
	n.unanswered[s.ID] = done
	n.peakInFlight = max(n.peakInFlight, len(n.unanswered))
	answer := n.answer
	n.mu.Unlock()
	if answer != nil {
		n.complete(s.ID, answer(s))
	}
}

// complete ends a submission with an outcome.
func (n *network) complete(id string, o carrier.Result) {
	n.mu.Lock()
	done := n.unanswered[id]
	if o.Verdict != carrier.Unknown { // an unknown outcome may be corrected later
		delete(n.unanswered, id)
	}
	n.mu.Unlock()
	done(o)
}

// submittedIDs returns the ids of all submissions.
func (n *network) submittedIDs() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.ids, " ")
}

// submittedAt returns the times of all submissions.
func (n *network) submittedAt() []time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.times)
}

// peak returns the largest number of submissions in flight.
func (n *network) peak() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.peakInFlight
}

// change calls f while the network is locked.
func (n *network) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

// connectionTo returns a route's only connection.
func connectionTo(n *network) []Connection { return []Connection{{Carrier: n}} }

func accept(s carrier.Submission) carrier.Result {
	return carrier.Result{Verdict: carrier.Accepted, ID: "M" + s.ID}
}

// bubble runs f with a Submitter in a synctest bubble.
func bubble(t *testing.T, routes []Route, o Options, f func(t *testing.T, sub *Submitter, s *store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		f(t, relaytest.Must(New(Deps{Store: s, Reporter: s, Routes: routes, Logger: slog.New(slog.DiscardHandler)}, o))(t), s)
	})
}

// advance lets time pass and waits until all goroutines are blocked.
func advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// stop stops a Submitter that has nothing in flight.
func stop(t *testing.T, sub *Submitter) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	relaytest.NoError(t, sub.Stop(ctx))
}
