package intake

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

// acceptBody accepts an entry of an account.
func (r *rig) acceptBody(acct relay.AccountID, body []byte) {
	r.t.Helper()
	if _, err := r.Accept(r.t.Context(), &Entry{Account: acct, Source: "generic", Body: body}); err != nil {
		r.t.Fatal(err)
	}
}

// Large entries of an account do not delay those of another account.
func TestLargeEntriesDoNotDelayOtherAccounts(t *testing.T) {
	r := newRig(t, Options{})
	release := make(chan struct{})
	r.p.set(func(ctx context.Context, items []Item) error {
		if slices.ContainsFunc(items, func(it Item) bool { return it.Entry.Account == 7 }) {
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return ctx.Err()
	}, nil)
	r.acceptBody(8, []byte("{}"))
	r.acceptLarge(12)
	r.acceptBody(8, []byte("{}"))
	r.run()
	r.await("the entry of the other account is processed", func() bool { return r.p.ended(14) == 1 })
	close(release)
	r.settled()
	r.await("the large entries are processed", func() bool { return len(r.statuses.reasons()) == 0 && r.p.ended(13) == 1 })
	for seq := uint64(1); seq <= 14; seq++ {
		relaytest.Equal(t, "how often an entry was processed", r.p.ended(seq), 1)
	}
}

func TestNeighboursAreAccountsThatSendAtTheSameTime(t *testing.T) {
	begin := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var n neighbours
	for _, step := range []struct {
		name  string
		acct  relay.AccountID
		after time.Duration
		want  bool
	}{
		{"an account alone", 1, 0, false},
		{"its next entry", 1, time.Second, false},
		{"another account", 2, 2 * time.Second, true},
		{"the first again", 1, 3 * time.Second, true},
		{"a third", 3, 4 * time.Second, true},
		{"the third, long after the others", 3, 4*time.Second + neighbourTime, false},
	} {
		relaytest.Equal(t, step.name, n.note(step.acct, begin.Add(step.after)), step.want)
	}
}

// Large entries are written one after the other, and small entries do not wait for them.
func TestSmallEntriesPassLargeOnes(t *testing.T) {
	r := newRig(t, Options{})
	relaytest.NoError(t, r.large.Acquire(t.Context(), maxLarge)) // another large entry is being written
	ended := make(chan error, 1)
	go func() {
		_, err := r.Accept(t.Context(), &Entry{Account: 7, Source: "generic", Body: make([]byte, largeBody+1)})
		ended <- err
	}()
	r.acceptBody(8, []byte("{}"))
	select {
	case err := <-ended:
		t.Errorf("the large entry did not wait: %v", err)
	default:
	}
	r.large.Release(maxLarge)
	relaytest.NoError(t, <-ended)
	relaytest.Equal(t, "the number of entries", r.Status().Journal.Last, 2)
}
