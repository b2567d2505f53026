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

func TestEntriesAreProcessedOnceInOrder(t *testing.T) {
	r := newRig(t, Options{Batch: 7, Workers: 1})
	r.accept(50)
	r.run()
	r.accept(50)
	r.waitProcessed()
	for n, seq := range r.p.order {
		if seq != uint64(n+1) {
			t.Fatalf("entry at position %d = %d, want %d", n, seq, n+1)
		}
	}
	s := r.Status()
	relaytest.Equal(t, "the number of items passed to the processor", len(r.p.order), 100)
	relaytest.Equal(t, "the number of accepted entries", s.Accepted, 100)
	relaytest.Equal(t, "the number of processed entries", s.Processed, 100)
	relaytest.Equal(t, "the number of quarantined entries", s.Quarantined, 0)
	relaytest.Equal(t, "the outage", s.Outage, "")
}

func TestWorkersLimitConcurrency(t *testing.T) {
	for workers := 1; workers <= 3; workers++ {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			r := newRig(t, Options{Batch: 1, Workers: workers})
			allRunning := make(chan struct{})
			var waiting atomic.Int32
			r.p.setHooks(func(ctx context.Context, _ []Item) error {
				if int(waiting.Add(1)) == workers {
					close(allRunning)
				}
				select {
				case <-allRunning:
				case <-ctx.Done():
				}
				return ctx.Err()
			}, nil)
			r.accept(20)
			r.run()
			r.waitProcessed()
			if r.p.maxRunning != workers {
				t.Errorf("concurrent calls = %d, want %d", r.p.maxRunning, workers)
			}
		})
	}
}

func TestTheCheckpointWaitsForEarlierBatches(t *testing.T) {
	r := newRig(t, Options{Batch: 1, Workers: 2})
	release := make(chan struct{})
	r.p.setHooks(func(_ context.Context, items []Item) error {
		if items[0].Seq == 1 {
			<-release
		}
		return nil
	}, nil)
	r.accept(2)
	r.run()
	r.await("entry 2 is processed", func() bool { return r.p.processedCount(2) == 1 })
	if got := r.consumer.Committed(); got != 0 {
		t.Errorf("checkpoint = %d while entry 1 is being processed, want 0", got)
	}
	close(release)
	r.waitProcessed()
}

// Quarantined counts unrouted entries too.
func TestEntriesWithAStatusAreCounted(t *testing.T) {
	cases := map[string]struct {
		onItem func(Item) (*event.Status, error)
		want   map[uint64]string
	}{
		"a panic": {
			func(item Item) (*event.Status, error) {
				if item.Seq == 37 {
					panic("poison")
				}
				return nil, nil
			}, map[uint64]string{37: "quarantined: internal error: poison"},
		},
		"an error": {
			func(item Item) (*event.Status, error) {
				if item.Seq%40 == 1 {
					return nil, errors.New("invalid \xff text")
				}
				return nil, nil
			}, map[uint64]string{1: "quarantined: invalid \uFFFD text", 41: "quarantined: invalid \uFFFD text"},
		},
		"an entry that the processor reports as unrouted": {
			func(item Item) (*event.Status, error) {
				if item.Seq == 2 {
					return &event.Status{ID: item.ID, Seq: item.Seq, State: event.Unrouted, Reason: "nobody"}, nil
				}
				return nil, nil
			}, map[uint64]string{2: "unrouted: nobody"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{MaxAttempts: 2})
			r.p.setHooks(nil, tc.onItem)
			r.accept(60)
			r.run()
			r.waitProcessed()
			if got := r.statuses.reasons(); !maps.Equal(got, tc.want) {
				t.Errorf("statuses = %v, want %v", got, tc.want)
			}
			ended := 0
			for seq := uint64(1); seq <= 60; seq++ {
				if r.p.processedCount(seq) > 0 || r.statuses.reasons()[seq] != "" {
					ended++
				}
			}
			s := r.Status()
			relaytest.Equal(t, "the number of entries with a result", ended, 60)
			relaytest.Equal(t, "the number of processed entries", s.Processed, 60)
			relaytest.Equal(t, "the number of quarantined entries", s.Quarantined, uint64(len(tc.want)))
			relaytest.Equal(t, "the outage", s.Outage, "")
		})
	}
}

func TestAFailingEntryDoesNotBlockProcessing(t *testing.T) {
	r := newRig(t, Options{MaxAttempts: 1})
	r.p.setHooks(nil, func(Item) (*event.Status, error) { return nil, errors.New("no") })
	r.accept(1)
	r.run()
	r.waitProcessed()
	relaytest.Equal(t, "the outage", r.Status().Outage, "")
	relaytest.Equal(t, "the intake is blocked", r.Blocked(), false)
}

func TestNoEntryIsQuarantinedWhileABackEndIsDown(t *testing.T) {
	r := newRig(t, Options{MaxAttempts: 1, Batch: 10})
	var calls atomic.Int32
	r.p.setHooks(func(context.Context, []Item) error {
		if calls.Add(1) <= 6 {
			return errDown()
		}
		return nil
	}, nil)
	r.accept(20)
	r.run()
	r.await("the status has the outage", func() bool { return strings.Contains(r.Status().Outage, "redis is down") })
	r.waitProcessed()
	relaytest.Equal(t, "the number of statuses", len(r.statuses.reasons()), 0)
	relaytest.Equal(t, "the outage", r.Status().Outage, "")
	relaytest.Equal(t, "the number of times entry 1 was processed", r.p.processedCount(1), 1)
}

func TestOutagesAreNotCountedAsAttempts(t *testing.T) {
	r := newRig(t, Options{MaxAttempts: 2})
	var calls atomic.Int32
	r.p.setHooks(func(context.Context, []Item) error {
		switch calls.Add(1) {
		case 1, 2:
			return errDown()
		case 3:
			return errors.New("no")
		}
		return nil
	}, nil)
	r.accept(1)
	r.run()
	r.waitProcessed()
	relaytest.Equal(t, "the number of calls", calls.Load(), 4)
	relaytest.Equal(t, "the number of statuses", len(r.statuses.reasons()), 0)
}

func TestTheCheckpointStaysWhileStatusesCannotBeSaved(t *testing.T) {
	r := newRig(t, Options{MaxAttempts: 1})
	r.p.setHooks(nil, func(item Item) (*event.Status, error) {
		return &event.Status{ID: item.ID, Seq: item.Seq, State: event.Quarantined, Reason: "x"}, nil
	})
	r.statuses.setDown(true)
	r.accept(3)
	r.run()
	r.await("processing is blocked", r.Blocked)
	if got := r.consumer.Committed(); got != 0 {
		t.Errorf("checkpoint = %d, want 0", got)
	}
	r.statuses.setDown(false)
	r.waitProcessed()
	relaytest.Equal(t, "the number of statuses", len(r.statuses.reasons()), 3)
	relaytest.Equal(t, "the intake is blocked", r.Blocked(), false)
}

func TestUncommittedEntriesAreProcessedAgain(t *testing.T) {
	for name, restart := range map[string]func(*rig){
		"after a restart of Run": func(*rig) {},
		"after a restart of the program": func(r *rig) {
			if err := r.log.Close(); err != nil {
				r.t.Fatal(err)
			}
			r.open(r.options)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{Batch: 5, Workers: 2})
			r.accept(20)
			r.p.setHooks(func(ctx context.Context, items []Item) error {
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
			r.p.setHooks(nil, nil)
			r.run()
			r.waitProcessed()
			for seq := uint64(1); seq <= 20; seq++ {
				if n := r.p.processedCount(seq); n != 1 {
					t.Errorf("entry %d: processed %d times, want 1", seq, n)
				}
			}
		})
	}
}

func TestARecordOfAnUnknownVersionIsQuarantined(t *testing.T) {
	r := newRig(t, Options{})
	r.accept(1)
	if _, err := r.log.Append(t.Context(), []byte{99, 1, 2}); err != nil {
		t.Fatal(err)
	}
	r.accept(1)
	r.run()
	r.waitProcessed()
	got := r.statuses.reasons()
	relaytest.Equal(t, "the number of statuses", len(got), 1)
	if !strings.Contains(got[2], "entry: version") {
		t.Errorf("reason = %q, want the unknown version", got[2])
	}
	relaytest.Equal(t, "the number of times entry 1 was processed", r.p.processedCount(1), 1)
	relaytest.Equal(t, "the number of times entry 3 was processed", r.p.processedCount(3), 1)
	found := listEvents(t, r, event.Filter{State: event.Quarantined}, 0)
	if len(found) != 1 {
		t.Fatalf("%d quarantined events, want 1", len(found))
	}
	relaytest.Equal(t, "the id of the event", found[0].ID, "n1-u2")
	relaytest.Equal(t, "the raw data of the event", string(found[0].Raw), "\x63\x01\x02")
}

func TestAnEntryThatTheJournalRefusesIsNotAccepted(t *testing.T) {
	r := newRig(t, Options{})
	e := Entry{Body: make([]byte, journal.MaxPayload+1)}
	if _, err := r.Accept(t.Context(), &e); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error of an entry above the limit = %v, want ErrTooLarge", err)
	}
	relaytest.NoError(t, r.log.Close())
	id, err := r.Accept(t.Context(), &Entry{})
	if err == nil {
		t.Error("no error after the journal was closed")
	}
	relaytest.Equal(t, "the id", id, "")
	relaytest.Equal(t, "the number of accepted entries", r.Status().Accepted, 0)
}

// The process was killed after it had quarantined an entry and before it saved the
// checkpoint. Before the restart, the cause of the quarantine was corrected.
func TestAnOutdatedStatusIsClearedAfterACrash(t *testing.T) {
	r := newRig(t, Options{Batch: 2, Workers: 1})
	r.accept(3)
	stale := event.Status{ID: "n1-1", Seq: 1, State: event.Quarantined, Reason: "no decoder"}
	relaytest.NoError(t, r.statuses.Set(t.Context(), event.Uplink, []event.Status{stale}))
	r.run()
	r.waitProcessed()
	if got := r.statuses.reasons(); len(got) != 0 {
		t.Errorf("statuses = %v, want none", got)
	}
}

func TestReprocessAcceptsAnEmptyJournal(t *testing.T) {
	r := newRig(t, Options{})
	n, err := r.Reprocess(t.Context(), 0)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of reprocessed entries", n, 0)
}

func TestDrainedReportsUnprocessedAndDeferredEntries(t *testing.T) {
	r := newRig(t, Options{})
	checkDrained := func(want bool, state string) {
		t.Helper()
		got, err := r.Drained(t.Context())
		relaytest.NoError(t, err)
		relaytest.Equal(t, "drained with "+state, got, want)
	}
	checkDrained(true, "an empty journal")
	r.accept(3)
	checkDrained(false, "unprocessed entries")
	stop := r.run()
	r.waitProcessed()
	stop()
	checkDrained(true, "processed entries only")
	relaytest.NoError(t, r.statuses.Set(t.Context(), r.kind, []event.Status{{ID: r.id(2), Seq: 2, Account: 7, State: event.Pending}}))
	checkDrained(false, "a deferred entry")
}
