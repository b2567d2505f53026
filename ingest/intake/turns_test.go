package intake

import (
	"context"
	"fmt"
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

func TestLargeEntriesDoNotDelayOtherAccounts(t *testing.T) {
	r := newRig(t, Options{})
	release := make(chan struct{})
	r.p.setHooks(func(ctx context.Context, items []Item) error {
		if slices.ContainsFunc(items, func(item Item) bool { return item.Entry.Account == 7 }) {
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
	r.await("the entry of the other account is processed", func() bool { return r.p.processedCount(14) == 1 })
	close(release)
	r.waitProcessed()
	r.await("the large entries are processed", func() bool { return len(r.statuses.reasons()) == 0 && r.p.processedCount(13) == 1 })
	for seq := uint64(1); seq <= 14; seq++ {
		relaytest.Equal(t, fmt.Sprintf("the number of times entry %d was processed", seq), r.p.processedCount(seq), 1)
	}
}

func TestRecentSendersReportEntriesOfOtherAccounts(t *testing.T) {
	begin := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var n recentSenders
	for _, step := range []struct {
		name  string
		acct  relay.AccountID
		delay time.Duration
		want  bool
	}{
		{"the first account", 1, 0, false},
		{"the next entry of the first account", 1, time.Second, false},
		{"the first entry of a second account", 2, 2 * time.Second, true},
		{"another entry of the first account", 1, 3 * time.Second, true},
		{"a third account", 3, 4 * time.Second, true},
		{"the third account, contentionTime later", 3, 4*time.Second + contentionTime, false},
	} {
		relaytest.Equal(t, step.name, n.add(step.acct, begin.Add(step.delay)), step.want)
	}
}

func TestSmallEntriesDoNotWaitForLargeOnes(t *testing.T) {
	r := newRig(t, Options{})
	relaytest.NoError(t, r.large.Acquire(t.Context(), maxLarge)) // another large entry is being written
	largeErr := make(chan error, 1)
	go func() {
		_, err := r.Accept(t.Context(), &Entry{Account: 7, Source: "generic", Body: make([]byte, largeBody+1)})
		largeErr <- err
	}()
	r.acceptBody(8, []byte("{}"))
	select {
	case err := <-largeErr:
		t.Errorf("the large entry did not wait: %v", err)
	default:
	}
	r.large.Release(maxLarge)
	relaytest.NoError(t, <-largeErr)
	relaytest.Equal(t, "the number of journal records", r.Status().Journal.Last, 2)
}
