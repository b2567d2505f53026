package lease

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/relay"
)

// leaseStore is a store of the ends of leases. Like a real store, it does not move a lease that
// ends later than the lease of the caller.
type leaseStore struct {
	ends         map[string]time.Time // by record; the time when a record without a lease is due
	loseResponse bool                 // the next call succeeds, but returns an error
	down         bool
}

func (l *leaseStore) Renew(_ context.Context, ls []relay.Lease[string], until time.Time) (moved []string, err error) {
	if l.down {
		return nil, errors.New("down")
	}
	for _, lease := range ls {
		if end, ok := l.ends[lease.Ref]; ok && !end.After(lease.End) {
			l.ends[lease.Ref] = until
			moved = append(moved, lease.Ref)
		}
	}
	if l.loseResponse {
		l.loseResponse = false
		return nil, errors.New("the response is lost")
	}
	return moved, nil
}

func (l *leaseStore) Release(ctx context.Context, ls []relay.Lease[string], due time.Time) error {
	_, err := l.Renew(ctx, ls, due)
	return err
}

const leaseTime = 30 * time.Second

// Each case leases the record a for leaseTime and runs steps. wantEnd is the end of the lease in
// the store, relative to the start.
func TestWhenLeasesEnd(t *testing.T) {
	for name, c := range map[string]struct {
		steps   func(s *Set[string], l *leaseStore, a *Hold[string])
		wantEnd time.Duration
	}{
		"a lease that ends late is not renewed": {func(s *Set[string], _ *leaseStore, _ *Hold[string]) {
			time.Sleep(leaseTime / 3)
			s.Renew(context.Background())
		}, leaseTime},
		"a lease that ends soon is renewed": {func(s *Set[string], _ *leaseStore, _ *Hold[string]) {
			time.Sleep(20 * time.Second)
			s.Renew(context.Background())
		}, 20*time.Second + leaseTime},
		"a lease is renewed after the response to a renewal was lost": {func(s *Set[string], l *leaseStore, _ *Hold[string]) {
			l.loseResponse = true
			time.Sleep(15 * time.Second)
			s.Renew(context.Background())
			time.Sleep(10 * time.Second)
			s.Renew(context.Background())
		}, 25*time.Second + leaseTime},
		"an expired lease that another process acquired is not moved": {func(s *Set[string], l *leaseStore, a *Hold[string]) {
			l.down = true
			time.Sleep(29 * time.Second)
			s.Renew(context.Background())
			time.Sleep(2 * time.Second)
			l.down, l.ends["a"] = false, time.Now().Add(leaseTime) // the lease of another process
			s.Renew(context.Background())
			if s.MayBegin(a) {
				panic("work may begin after the lease expired")
			}
			s.Release(context.Background(), []relay.Lease[string]{s.Lease(a)}, time.Now())
		}, 31*time.Second + leaseTime},
		"a lease that was extended is released": {func(s *Set[string], l *leaseStore, a *Hold[string]) {
			until := time.Now().Add(2 * leaseTime)
			s.SetLatestEnd(a, until)
			l.ends["a"] = until
			s.Release(context.Background(), []relay.Lease[string]{s.Lease(a)}, time.Now())
		}, 0},
		"a second lease of a held record is released after the hold": {func(s *Set[string], l *leaseStore, _ *Hold[string]) {
			l.ends["a"] = time.Now().Add(2 * leaseTime)
			secondHold := NewHold("a", l.ends["a"])
			if s.Add(&secondHold) || !s.Drop("a") {
				panic("the record was not held when it was leased again")
			}
			s.ReleaseSpare(context.Background())
		}, 0},
		"the lease of a dropped record is not renewed": {func(s *Set[string], _ *leaseStore, _ *Hold[string]) {
			s.Drop("a")
			time.Sleep(20 * time.Second)
			s.Renew(context.Background())
			s.ReleaseSpare(context.Background())
		}, leaseTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				l := &leaseStore{ends: map[string]time.Time{"a": start.Add(leaseTime)}}
				s := NewSet(Options[string]{Store: l, Duration: leaseTime, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
				a := NewHold("a", start.Add(leaseTime))
				if !s.Add(&a) || !s.Has("a") {
					t.Fatal("a is not held")
				}
				c.steps(s, l, &a)
				if want := map[string]time.Time{"a": start.Add(c.wantEnd)}; !maps.Equal(l.ends, want) {
					t.Errorf("the lease ends after %s, want %s", l.ends["a"].Sub(start), c.wantEnd)
				}
			})
		})
	}
}

func TestReserveAdmitsOneGoroutineAndNoHeldRecord(t *testing.T) {
	s := NewSet(Options[string]{Now: time.Now})
	if !s.Reserve("a") || s.Reserve("a") {
		t.Error("the first Reserve failed or the second one succeeded")
	}
	a := NewHold("a", time.Now().Add(leaseTime))
	s.Add(&a)
	s.Unreserve("a")
	if s.Reserve("a") {
		t.Error("Reserve succeeded for a held record")
	}
	s.Drop("a")
	if !s.Reserve("a") {
		t.Error("Reserve failed for a dropped record")
	}
}
