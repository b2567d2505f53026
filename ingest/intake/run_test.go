package intake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestEverythingIsProcessedOnce(t *testing.T) {
	r := newRig(t, Options{Batch: 7, Workers: 1})
	r.accept(50)
	r.run()
	r.accept(50)
	r.settled()
	for n, seq := range r.p.order {
		if seq != uint64(n+1) {
			t.Fatalf("place %d: %d", n, seq)
		}
	}
	s := r.Status()
	relaytest.Equal(t, "the number of entries given to the processor", len(r.p.order), 100)
	relaytest.Equal(t, "the number of entries accepted", s.Accepted, 100)
	relaytest.Equal(t, "the number of entries processed", s.Processed, 100)
	relaytest.Equal(t, "the number of entries quarantined", s.Quarantined, 0)
	relaytest.Equal(t, "the reason to wait", s.Waiting, "")
}

func TestConcurrencyIsLimitedToTheWorkers(t *testing.T) {
	for workers := 1; workers <= 3; workers++ {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			r := newRig(t, Options{Batch: 1, Workers: workers})
			all := make(chan struct{})
			var waiting atomic.Int32
			r.p.set(func(ctx context.Context, _ []Item) error {
				if int(waiting.Add(1)) == workers {
					close(all)
				}
				select {
				case <-all:
				case <-ctx.Done():
				}
				return ctx.Err()
			}, nil)
			r.accept(20)
			r.run()
			r.settled()
			if r.p.most != workers {
				t.Errorf("%d at a time", r.p.most)
			}
		})
	}
}

func TestTheCheckpointFollowsInOrder(t *testing.T) {
	r := newRig(t, Options{Batch: 1, Workers: 2})
	release := make(chan struct{})
	r.p.set(func(_ context.Context, items []Item) error {
		if items[0].Seq == 1 {
			<-release
		}
		return nil
	}, nil)
	r.accept(2)
	r.run()
	r.await("the second is done", func() bool { return r.p.ended(2) == 1 })
	if got := r.consumer.Committed(); got != 0 {
		t.Errorf("the checkpoint is at %d while the first is in the works", got)
	}
	close(release)
	r.settled()
}

func TestFailingEntriesAreQuarantined(t *testing.T) {
	cases := map[string]struct {
		each func(Item) (*event.Status, error)
		want map[uint64]string
	}{
		"a panic": {
			func(it Item) (*event.Status, error) {
				if it.Seq == 37 {
					panic("poison")
				}
				return nil, nil
			}, map[uint64]string{37: "quarantined: internal error: poison"},
		},
		"an error": {
			func(it Item) (*event.Status, error) {
				if it.Seq%40 == 1 {
					return nil, errors.New("no \xff text")
				}
				return nil, nil
			}, map[uint64]string{1: "quarantined: no \uFFFD text", 41: "quarantined: no \uFFFD text"},
		},
		"what the processor quarantines": {
			func(it Item) (*event.Status, error) {
				if it.Seq == 2 {
					return &event.Status{ID: it.ID, Seq: it.Seq, State: event.Unrouted, Reason: "nobody"}, nil
				}
				return nil, nil
			}, map[uint64]string{2: "unrouted: nobody"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{MaxAttempts: 2})
			r.p.set(nil, tc.each)
			r.accept(60)
			r.run()
			r.settled()
			if got := r.statuses.reasons(); !maps.Equal(got, tc.want) {
				t.Errorf("statuses %v, want %v", got, tc.want)
			}
			ended := 0
			for seq := uint64(1); seq <= 60; seq++ {
				if r.p.ended(seq) > 0 || r.statuses.reasons()[seq] != "" {
					ended++
				}
			}
			s := r.Status()
			relaytest.Equal(t, "the number of entries that ended", ended, 60)
			relaytest.Equal(t, "the number of entries processed", s.Processed, 60)
			relaytest.Equal(t, "the number of entries quarantined", s.Quarantined, uint64(len(tc.want)))
			relaytest.Equal(t, "the reason to wait", s.Waiting, "")
		})
	}
}

func TestASingleFailureBlocksNothing(t *testing.T) {
	r := newRig(t, Options{MaxAttempts: 1})
	r.p.set(nil, func(Item) (*event.Status, error) { return nil, errors.New("no") })
	r.accept(1)
	r.run()
	r.settled()
	relaytest.Equal(t, "the reason to wait", r.Status().Waiting, "")
	relaytest.Equal(t, "the intake is blocked", r.Blocked(), false)
}

func TestWhileABackEndIsDownNothingIsQuarantined(t *testing.T) {
	r := newRig(t, Options{MaxAttempts: 1, Batch: 10})
	var fails atomic.Int32
	r.p.set(func(context.Context, []Item) error {
		if fails.Add(1) <= 6 {
			return down()
		}
		return nil
	}, nil)
	r.accept(20)
	r.run()
	r.await("it says why it waits", func() bool { return strings.Contains(r.Status().Waiting, "redis is down") })
	r.settled()
	relaytest.Equal(t, "the number of statuses", len(r.statuses.reasons()), 0)
	relaytest.Equal(t, "the reason to wait", r.Status().Waiting, "")
	relaytest.Equal(t, "how often the entry was processed", r.p.ended(1), 1)
}

func TestTheCheckpointStaysWhileStatusesCannotBeSaved(t *testing.T) {
	r := newRig(t, Options{MaxAttempts: 1})
	r.p.set(nil, func(it Item) (*event.Status, error) {
		return &event.Status{ID: it.ID, Seq: it.Seq, State: event.Quarantined, Reason: "x"}, nil
	})
	r.statuses.setDown(true)
	r.accept(3)
	r.run()
	r.await("it waits", func() bool { return r.Blocked() })
	if got := r.consumer.Committed(); got != 0 {
		t.Errorf("the checkpoint is at %d", got)
	}
	r.statuses.setDown(false)
	r.settled()
	relaytest.Equal(t, "the number of statuses", len(r.statuses.reasons()), 3)
	relaytest.Equal(t, "the intake is blocked", r.Blocked(), false)
}

func TestUncommittedEntriesAreProcessedAgain(t *testing.T) {
	for name, restart := range map[string]func(*rig){
		"when processing starts again": func(*rig) {},
		"when the program starts again": func(r *rig) {
			if err := r.log.Close(); err != nil {
				r.t.Fatal(err)
			}
			r.open(r.options)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{Batch: 5, Workers: 2})
			r.accept(20)
			r.p.set(func(ctx context.Context, items []Item) error {
				if items[0].Seq > 5 {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			}, nil)
			stop := r.run()
			r.await("the first five are committed", func() bool { return r.consumer.Committed() == 5 })
			stop()
			restart(r)
			r.p.set(nil, nil)
			r.run()
			r.settled()
			for seq := uint64(1); seq <= 20; seq++ {
				if n := r.p.ended(seq); n != 1 {
					t.Errorf("entry %d ended %d times", seq, n)
				}
			}
		})
	}
}

func TestARecordThatCannotBeReadIsQuarantined(t *testing.T) {
	r := newRig(t, Options{})
	r.accept(1)
	if _, err := r.log.Append(t.Context(), []byte{99, 1, 2}); err != nil {
		t.Fatal(err)
	}
	r.accept(1)
	r.run()
	r.settled()
	got := r.statuses.reasons()
	relaytest.Equal(t, "the number of statuses", len(got), 1)
	if !strings.Contains(got[2], "entry: version") {
		t.Errorf("the reason %q lacks the version", got[2])
	}
	relaytest.Equal(t, "how often the first was processed", r.p.ended(1), 1)
	relaytest.Equal(t, "how often the third was processed", r.p.ended(3), 1)
	found := list(t, r, event.Filter{State: event.Quarantined}, 0)
	if len(found) != 1 {
		t.Fatalf("%d events, want 1", len(found))
	}
	relaytest.Equal(t, "the event", found[0].ID, "n1-u2")
	relaytest.Equal(t, "its bytes", string(found[0].Raw), "\x63\x01\x02")
}

func TestEntriesThatTheJournalRefusesAreNotAccepted(t *testing.T) {
	r := newRig(t, Options{})
	e := Entry{Body: make([]byte, journal.MaxPayload+1)}
	if _, err := r.Accept(t.Context(), &e); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	relaytest.NoError(t, r.log.Close())
	id, err := r.Accept(t.Context(), &Entry{})
	if err == nil {
		t.Error("accepted after the journal was closed")
	}
	relaytest.Equal(t, "the id", id, "")
	if r.Status().Accepted != 0 {
		t.Error("an entry that was not accepted was counted as accepted")
	}
}

// The process is killed after it has quarantined an entry and before it has saved the
// checkpoint. Before the restart, the cause of the quarantine is corrected.
func TestTheStatusOfAnEntryThatSucceedsAfterACrashIsCleared(t *testing.T) {
	r := newRig(t, Options{Batch: 2, Workers: 1})
	r.accept(3)
	stale := event.Status{ID: "n1-1", Seq: 1, State: event.Quarantined, Reason: "there is no decoder"}
	relaytest.NoError(t, r.statuses.Set(t.Context(), event.Uplink, []event.Status{stale}))
	r.run()
	r.settled()
	if got := r.statuses.reasons(); len(got) != 0 {
		t.Errorf("statuses %v", got)
	}
}

func TestAJournalWithoutEntriesIsReprocessed(t *testing.T) {
	r := newRig(t, Options{})
	n, err := r.Reprocess(t.Context(), 0)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of entries reprocessed", n, 0)
}

func TestDrainedSaysWhetherAnEntryIsLeft(t *testing.T) {
	r := newRig(t, Options{})
	drained := func(want bool, when string) {
		t.Helper()
		got, err := r.Drained(t.Context())
		relaytest.NoError(t, err)
		relaytest.Equal(t, "drained "+when, got, want)
	}
	drained(true, "an empty journal")
	r.accept(3)
	drained(false, "entries that were accepted")
	stop := r.run()
	r.settled()
	stop()
	drained(true, "entries that were processed")
	relaytest.NoError(t, r.statuses.Set(t.Context(), r.kind, []event.Status{{ID: r.id(2), Seq: 2, Account: 7, State: event.Pending}}))
	drained(false, "an entry that was deferred")
}
