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

// store keeps messages in memory.
type store struct {
	mu      sync.Mutex
	all     map[message.Ref]*message.Message
	next    map[message.Ref]time.Time // when a waiting message is due
	down    bool
	lost    bool          // the next Begin succeeds, but returns an error
	latency time.Duration // of Begin and Settle
	// lostRenewal makes the next renewal succeed, but return an error.
	lostRenewal bool
	// onReports is called once, between Settle and the end of the outcome's item.
	onReports func()
	bound     []message.CarrierID
	reported  []string
	refunds   int
	begins    int // calls
	settles   int
	leased    int // messages
}

func newStore() *store {
	return &store{all: make(map[message.Ref]*message.Message), next: make(map[message.Ref]time.Time)}
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

func (s *store) LeaseDue(_ context.Context, now, until time.Time, limit int) (out []message.Message, err error) {
	if err := s.lock(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, m := range s.inOrder() {
		if due, waits := s.next[m.Ref()]; waits && !due.After(now) && len(out) < limit {
			s.next[m.Ref()] = until
			s.leased++
			out = append(out, copied(m))
		}
	}
	return out, nil
}

func (s *store) inOrder() (list []*message.Message) {
	for _, m := range s.all {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b *message.Message) int { return int(a.ID - b.ID) })
	return list
}

func copied(m *message.Message) message.Message {
	out := *m
	out.Parts = slices.Clone(m.Parts)
	return out
}

func (s *store) Begin(_ context.Context, starts []message.Beginning) ([][]int, error) {
	time.Sleep(s.latency)
	if err := s.lock(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	s.begins++
	out := make([][]int, len(starts))
	for i, st := range starts {
		m := s.all[st.Ref]
		for _, n := range st.Parts {
			p := &m.Parts[n]
			if p.State == message.Pending || p.State == message.Sending && st.AlsoSending {
				p.State, p.Carrier = message.Sending, st.Carrier
				s.next[st.Ref] = st.Until
				out[i] = append(out[i], n)
			}
		}
	}
	if s.lost {
		s.lost = false
		return nil, relay.Errorf(relay.KindUnavailable, "the answer is lost")
	}
	return out, nil
}

// dispatch dispatches messages under the lease that the store has.
func (s *store) dispatch(w *Submitter, ms ...message.Message) { w.Dispatch(ms, s.due(ms[0].ID)) }

func (s *store) Settle(_ context.Context, outcomes []message.Outcome) (settled []message.Message, err error) {
	time.Sleep(s.latency)
	if err := s.lock(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	s.settles++
	for _, o := range outcomes {
		m := s.all[o.PartRef.Ref]
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
		s.rest(m, o.At)
		settled = append(settled, copied(m))
	}
	return settled, nil
}

// rest sets when a message is due next.
func (s *store) rest(m *message.Message, now time.Time) {
	next := time.Time{}
	_, leased := s.next[m.Ref()]
	for _, p := range m.Parts {
		if leased && (p.State == message.Sending || p.State == message.Pending && !p.ScheduledAt.After(now)) {
			return
		}
		if p.State == message.Pending && (next.IsZero() || p.ScheduledAt.Before(next)) {
			next = p.ScheduledAt
		}
	}
	if s.next[m.Ref()] = next; next.IsZero() {
		delete(s.next, m.Ref())
	}
}

func (s *store) Renew(_ context.Context, ls []message.Lease, until time.Time) (moved []message.Ref, err error) {
	if err := s.lock(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, l := range ls {
		if due, waits := s.next[l.Ref]; waits && !due.After(l.End) {
			s.next[l.Ref] = until
			moved = append(moved, l.Ref)
		}
	}
	if s.lostRenewal {
		s.lostRenewal = false
		return nil, relay.Errorf(relay.KindUnavailable, "the answer is lost")
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
	s.bound = append(s.bound, ids...)
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

func (s *store) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// states returns the states of a message's parts.
func (s *store) states(id message.ID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, p := range s.all[message.Ref{Account: 7, ID: id}].Parts {
		out = append(out, string(p.State))
	}
	return strings.Join(out, " ")
}

func (s *store) part(id message.ID, n int) message.Part {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[message.Ref{Account: 7, ID: id}].Parts[n]
}

// counts are the calls and writes of a store.
type counts struct {
	bound                    []message.CarrierID
	reported                 []string
	refunds, begins, settles int
}

func (s *store) count() counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return counts{slices.Clone(s.bound), slices.Clone(s.reported), s.refunds, s.begins, s.settles}
}

func (s *store) due(id message.ID) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next[message.Ref{Account: 7, ID: id}]
}

// save saves a message of so many parts, leased until then or due now.
func (s *store) save(id message.ID, to string, parts int, due time.Time) message.Message {
	m := &message.Message{ID: id, Account: 7, Destination: to, Coding: message.GSM, ReceivedAt: time.Now(), ScheduledFor: time.Now()}
	for range parts {
		m.Parts = append(m.Parts, message.Part{State: message.Pending, ScheduledAt: time.Now(), Text: "x", Data: []byte("x")})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[m.Ref()], s.next[m.Ref()] = m, due
	return copied(m)
}

// network is a carrier whose outcomes the test chooses.
type network struct {
	mu       sync.Mutex
	sent     []string
	times    []time.Time
	open     map[string]func(carrier.Outcome) // without an answer
	most     int
	answer   func(s carrier.Submission) carrier.Outcome // nil: the test calls complete
	notReady bool
}

func (n *network) Ready() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.notReady
}

func (n *network) Submit(_ context.Context, s carrier.Submission, done func(carrier.Outcome)) {
	n.mu.Lock()
	n.sent, n.times = append(n.sent, s.ID), append(n.times, time.Now())
	if n.open == nil {
		n.open = make(map[string]func(carrier.Outcome))
	}
	n.open[s.ID] = done
	n.most = max(n.most, len(n.open))
	answer := n.answer
	n.mu.Unlock()
	if answer != nil {
		n.complete(s.ID, answer(s))
	}
}

// complete ends a submission with an outcome.
func (n *network) complete(id string, o carrier.Outcome) {
	n.mu.Lock()
	done := n.open[id]
	if o.Verdict != carrier.Unknown { // which may be corrected
		delete(n.open, id)
	}
	n.mu.Unlock()
	done(o)
}

// all returns the ids of all submissions.
func (n *network) all() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.sent, " ")
}

// tried returns the times of all submissions.
func (n *network) tried() []time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.times)
}

// peak returns the largest number of submissions in flight.
func (n *network) peak() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.most
}

func (n *network) set(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

// over returns one connection to a network.
func over(n *network) []Connection { return []Connection{{Carrier: n}} }

func accept(s carrier.Submission) carrier.Outcome {
	return carrier.Outcome{Verdict: carrier.Accepted, ID: "M" + s.ID}
}

// bubble runs a test with a worker in a synctest bubble.
func bubble(t *testing.T, routes []Route, o Options, f func(t *testing.T, w *Submitter, s *store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		f(t, relaytest.Must(New(Deps{Store: s, Reporter: s, Routes: routes, Logger: slog.New(slog.DiscardHandler)}, o))(t), s)
	})
}

// settle lets time pass and waits until all goroutines are blocked.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// stop stops a worker that has nothing in flight.
func stop(t *testing.T, w *Submitter) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	relaytest.NoError(t, w.Stop(ctx))
}
