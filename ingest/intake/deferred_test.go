package intake

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

// acceptFor accepts n entries of an account.
func (r *rig) acceptFor(acct relay.AccountID, n int) {
	r.t.Helper()
	for range n {
		if _, err := r.Accept(r.t.Context(), &Entry{Account: acct, Source: "generic", Body: []byte(`{}`)}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// deferEntriesOf makes the processor defer the entries of an account that may be deferred.
func (r *rig) deferEntriesOf(acct relay.AccountID) {
	r.p.setHooks(nil, func(item Item) (*event.Status, error) {
		if item.Entry.Account != acct || item.ProcessNow {
			return nil, nil
		}
		return &event.Status{ID: item.ID, Seq: item.Seq, State: event.Pending, Reason: "waits", Account: acct}, nil
	})
}

func TestDeferredEntriesAreProcessedAgain(t *testing.T) {
	r := newRig(t, Options{})
	r.deferEntriesOf(7)
	r.acceptFor(7, 40)
	r.acceptFor(3, 40)
	stop := r.run()
	r.waitProcessed()
	r.await("deferred entries are processed", func() bool { return len(r.statuses.reasons()) == 0 })
	stop()
	for seq, want := range map[uint64]int{1: 2, 40: 2, 41: 1, 80: 1} {
		if n := r.p.processedCount(seq); n != want {
			t.Errorf("entry %d: processed %d times, want %d", seq, n, want)
		}
	}
	s := r.Status()
	relaytest.Equal(t, "the number of deferred entries", s.Deferred, 40)
	relaytest.Equal(t, "the number of quarantined entries", s.Quarantined, 0)
}

// The checkpoint passes deferred entries. The event of a deferred entry has the reason of the
// deferral.
func TestDeferredEntriesDoNotDelayOtherEntries(t *testing.T) {
	r := newRig(t, Options{Batch: 10})
	release := make(chan struct{})
	r.p.setHooks(nil, func(item Item) (*event.Status, error) {
		if item.Entry.Account != 7 {
			return nil, nil
		}
		if item.ProcessNow {
			<-release
			return nil, nil
		}
		return &event.Status{ID: item.ID, Seq: item.Seq, State: event.Pending, Reason: "waits", Account: 7}, nil
	})
	r.acceptFor(7, 30)
	r.acceptFor(3, 30)
	stop := r.run()
	r.waitProcessed()
	relaytest.Equal(t, "the number of times entry 60 was processed", r.p.processedCount(60), 1)
	e, _, err := r.Event(t.Context(), r.id(30))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the state of a deferred entry", e.State, event.Pending)
	relaytest.Equal(t, "the reason of a deferred entry", e.Reason, "waits")
	close(release)
	r.await("deferred entries are processed", func() bool { return len(r.statuses.reasons()) == 0 })
	stop()
}

func TestAccountsTakeTurnsWithDeferredEntries(t *testing.T) {
	r := newRig(t, Options{})
	r.acceptFor(7, 3*deferredBatch)
	r.acceptFor(9, 2)
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
	for lastAccount := noAccount; len(turns) < 5; {
		earlier := len(r.p.order)
		turnAccount, err := r.processTurn(t.Context(), lastAccount)
		relaytest.NoError(t, err)
		accounts := ""
		for _, seq := range r.p.order[earlier:] {
			accounts += map[bool]string{true: "9", false: "7"}[seq > 3*deferredBatch]
		}
		turns, lastAccount = append(turns, accounts), turnAccount
	}
	if want := []string{strings.Repeat("7", deferredBatch), "99", "", strings.Repeat("7", deferredBatch), ""}; !slices.Equal(turns, want) {
		t.Errorf("accounts of the turns = %q, want %q", turns, want)
	}
}

// The status of entry 99 has no record: the restart clears it.
func TestDeferredEntriesSurviveARestart(t *testing.T) {
	r := newRig(t, Options{})
	r.acceptFor(7, 2)
	stop := r.run()
	r.waitProcessed()
	stop()
	if err := r.statuses.Set(t.Context(), event.Uplink, []event.Status{
		{ID: r.id(2), Seq: 2, State: event.Pending, Account: 7}, {ID: r.id(99), Seq: 99, State: event.Pending, Account: 7},
	}); err != nil {
		t.Fatal(err)
	}
	relaytest.NoError(t, r.log.Close())
	r.open(Options{Linger: -1, Logger: slog.New(slog.DiscardHandler)})
	r.run()
	r.await("deferred entries are processed", func() bool { return len(r.statuses.reasons()) == 0 })
	relaytest.Equal(t, "the number of times entry 1 was processed", r.p.processedCount(1), 1)
	relaytest.Equal(t, "the number of times entry 2 was processed", r.p.processedCount(2), 2)
}

func TestDeferredEntriesWaitForABackEnd(t *testing.T) {
	r := newRig(t, Options{})
	r.deferEntriesOf(7)
	r.statuses.setDown(true)
	r.acceptFor(7, 1)
	r.run()
	r.await("processing is blocked", r.Blocked)
	r.statuses.setDown(false)
	r.await("the entry is processed", func() bool { return r.p.processedCount(1) == 2 && len(r.statuses.reasons()) == 0 && !r.Blocked() })
}

// When a back end has lost its newest writes, Revert moves the checkpoint back to the last
// position that DurableSeq returned.
func TestEntriesAfterACompletePositionAreProcessedAgain(t *testing.T) {
	r := newRig(t, Options{})
	release := make(chan struct{})
	r.p.setHooks(nil, func(item Item) (*event.Status, error) {
		if item.Entry.Account != 7 {
			return nil, nil
		}
		if item.ProcessNow {
			<-release
			return nil, nil
		}
		return &event.Status{ID: item.ID, Seq: item.Seq, State: event.Pending, Account: 7}, nil
	})
	if _, ok := r.DurableSeq(); ok {
		t.Error("complete before the statuses are read")
	}
	stop := r.run()
	r.await("no entry is deferred", func() bool { _, ok := r.DurableSeq(); return ok })
	r.acceptFor(3, 2)
	r.waitProcessed()
	seq, ok := r.DurableSeq()
	relaytest.Equal(t, "the complete position", seq, 2)
	relaytest.Equal(t, "complete", ok, true)
	r.acceptFor(7, 1)
	r.acceptFor(3, 1)
	r.waitProcessed()
	if seq, ok := r.DurableSeq(); ok {
		t.Errorf("complete up to %d while an entry is deferred", seq)
	}
	close(release)
	r.await("the deferred entry is processed", func() bool { seq, ok := r.DurableSeq(); return ok && seq == 4 })
	stop()

	count, firstSeq, err := r.Revert(2)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of entries to process again", count, 2)
	relaytest.Equal(t, "the sequence of the first entry", firstSeq, 3)
	r.run()
	r.waitProcessed()
	for seq, want := range map[uint64]int{2: 1, 3: 4, 4: 2} {
		relaytest.Eventually(t, fmt.Sprintf("entry %d is processed %d times", seq, want), func() (any, bool) { n := r.p.processedCount(seq); return n, n == want })
	}
	if count, _, err := r.Revert(9); count != 0 || err != nil {
		t.Errorf("Revert beyond the checkpoint = %d, %v, want 0, no error", count, err)
	}
}
