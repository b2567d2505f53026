package intake

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

// acceptOf accepts n entries of an account.
func (r *rig) acceptOf(acct relay.AccountID, n int) {
	r.t.Helper()
	for range n {
		if _, err := r.Accept(r.t.Context(), &Entry{Account: acct, Source: "generic", Body: []byte(`{}`)}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// busyWith defers the entries of an account until they are NoDefer.
func (r *rig) busyWith(acct relay.AccountID) {
	r.p.set(nil, func(it Item) (*event.Status, error) {
		if it.Entry.Account != acct || it.NoDefer {
			return nil, nil
		}
		return &event.Status{ID: it.ID, Seq: it.Seq, State: event.Pending, Reason: "waits", Account: acct}, nil
	})
}

func TestDeferredEntriesAreProcessedAgain(t *testing.T) {
	r := newRig(t, Options{})
	r.busyWith(7)
	r.acceptOf(7, 40)
	r.acceptOf(3, 40)
	stop := r.run()
	r.settled()
	r.await("what was deferred is processed", func() bool { return len(r.statuses.reasons()) == 0 })
	stop()
	for seq, want := range map[uint64]int{1: 2, 40: 2, 41: 1, 80: 1} {
		if n := r.p.ended(seq); n != want {
			t.Errorf("entry %d was processed %d times, want %d", seq, n, want)
		}
	}
	s := r.Status()
	relaytest.Equal(t, "the number of entries deferred", s.Deferred, 40)
	relaytest.Equal(t, "the number of entries quarantined", s.Quarantined, 0)
}

// The checkpoint passes deferred entries, so that other entries do not wait. The event has the
// reason why it is pending.
func TestDeferredEntriesDelayNoOthers(t *testing.T) {
	r := newRig(t, Options{Batch: 10})
	release := make(chan struct{})
	r.p.set(nil, func(it Item) (*event.Status, error) {
		if it.Entry.Account != 7 {
			return nil, nil
		}
		if it.NoDefer {
			<-release
			return nil, nil
		}
		return &event.Status{ID: it.ID, Seq: it.Seq, State: event.Pending, Reason: "waits", Account: 7}, nil
	})
	r.acceptOf(7, 30)
	r.acceptOf(3, 30)
	stop := r.run()
	r.settled()
	if r.p.ended(60) != 1 {
		t.Error("the other account's entries were not processed")
	}
	e, _, err := r.Event(t.Context(), r.id(30))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the state of a deferred entry", e.State, event.Pending)
	relaytest.Equal(t, "its reason", e.Reason, "waits")
	close(release)
	r.await("what was deferred is processed", func() bool { return len(r.statuses.reasons()) == 0 })
	stop()
}

// A turn has entries of several accounts, however many of one account wait.
func TestAccountsTakeTurnsWithDeferredEntries(t *testing.T) {
	r := newRig(t, Options{})
	r.acceptOf(7, 3*deferredBatch)
	r.acceptOf(9, 2)
	var statuses []event.Status
	for seq := uint64(1); seq <= 3*deferredBatch+2; seq++ {
		acct := relay.AccountID(7)
		if seq > 3*deferredBatch {
			acct = 9
		}
		statuses = append(statuses, event.Status{ID: r.id(seq), Seq: seq, State: event.Pending, Account: acct})
	}
	relaytest.NoError(t, r.statuses.Set(t.Context(), event.Uplink, statuses))
	var turns []string
	for last := noAccount; len(turns) < 5; {
		before := len(r.p.order)
		next, err := r.deferredTurn(t.Context(), last)
		relaytest.NoError(t, err)
		who := ""
		for _, seq := range r.p.order[before:] {
			who += map[bool]string{true: "9", false: "7"}[seq > 3*deferredBatch]
		}
		turns, last = append(turns, who), next
	}
	if want := []string{strings.Repeat("7", deferredBatch), "99", "", strings.Repeat("7", deferredBatch), ""}; !slices.Equal(turns, want) {
		t.Errorf("%q, want %q", turns, want)
	}
}

// Entries deferred before a crash are processed after it, except those whose records are
// deleted.
func TestDeferredEntriesSurviveARestart(t *testing.T) {
	r := newRig(t, Options{})
	r.acceptOf(7, 2)
	stop := r.run()
	r.settled()
	stop()
	if err := r.statuses.Set(t.Context(), event.Uplink, []event.Status{
		{ID: r.id(2), Seq: 2, State: event.Pending, Account: 7}, {ID: r.id(99), Seq: 99, State: event.Pending, Account: 7},
	}); err != nil {
		t.Fatal(err)
	}
	relaytest.NoError(t, r.log.Close())
	r.open(Options{Linger: -1, Logger: slog.New(slog.DiscardHandler)})
	r.run()
	r.await("what was deferred is processed", func() bool { return len(r.statuses.reasons()) == 0 })
	relaytest.Equal(t, "how often the first was processed", r.p.ended(1), 1)
	relaytest.Equal(t, "how often the second was processed", r.p.ended(2), 2)
}

func TestDeferredEntriesWaitForABackEnd(t *testing.T) {
	r := newRig(t, Options{})
	r.busyWith(7)
	r.statuses.setDown(true)
	r.acceptOf(7, 1)
	r.run()
	r.await("it waits", r.Blocked)
	r.statuses.setDown(false)
	r.await("it is processed", func() bool { return r.p.ended(1) == 2 && len(r.statuses.reasons()) == 0 && !r.Blocked() })
}

// After a back end lost its newest writes, the journal is processed again from the first
// entry whose effects may be missing.
func TestTheJournalIsProcessedAgainFromWhereABackEndIsComplete(t *testing.T) {
	r := newRig(t, Options{})
	release := make(chan struct{})
	r.p.set(nil, func(it Item) (*event.Status, error) {
		if it.Entry.Account != 7 {
			return nil, nil
		}
		if it.NoDefer {
			<-release
			return nil, nil
		}
		return &event.Status{ID: it.ID, Seq: it.Seq, State: event.Pending, Account: 7}, nil
	})
	if _, ok := r.Complete(); ok {
		t.Error("it is complete before it is known whether entries are deferred")
	}
	stop := r.run()
	r.await("no entry is deferred", func() bool { _, ok := r.Complete(); return ok })
	r.acceptOf(3, 2)
	r.settled()
	seq, ok := r.Complete()
	relaytest.Equal(t, "the position", seq, 2)
	relaytest.Equal(t, "the position is complete", ok, true)
	r.acceptOf(7, 1)
	r.acceptOf(3, 1)
	r.settled()
	if seq, ok := r.Complete(); ok {
		t.Errorf("it is complete up to %d although an entry is deferred", seq)
	}
	close(release)
	r.await("the deferred entry has ended", func() bool { seq, ok := r.Complete(); return ok && seq == 4 })
	stop()

	count, first, err := r.Revert(2)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of entries", count, 2)
	relaytest.Equal(t, "the first of them", first, 3)
	r.run()
	r.settled()
	for seq, want := range map[uint64]int{2: 1, 3: 4, 4: 2} {
		relaytest.Eventually(t, "the entry is processed as often as it must be", func() (any, bool) { n := r.p.ended(seq); return n, n == want })
	}
	if count, _, err := r.Revert(9); count != 0 || err != nil {
		t.Errorf("%d entries, %v", count, err)
	}
}
