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

// leases is a store: the ends of leases, or when records are due, by name. Like the
// real ones it moves no lease that ends later than the caller knows.
type leases struct {
	ends       map[string]time.Time
	loseAnswer bool // of the next call, which succeeds
	down       bool
}

func (l *leases) Renew(_ context.Context, ls []relay.Lease[string], until time.Time) (moved []string, err error) {
	if l.down {
		return nil, errors.New("down")
	}
	for _, one := range ls {
		if end, ok := l.ends[one.Ref]; ok && !end.After(one.End) {
			l.ends[one.Ref] = until
			moved = append(moved, one.Ref)
		}
	}
	if l.loseAnswer {
		l.loseAnswer = false
		return nil, errors.New("the answer is lost")
	}
	return moved, nil
}

func (l *leases) Release(ctx context.Context, ls []relay.Lease[string], due time.Time) error {
	_, err := l.Renew(ctx, ls, due)
	return err
}

const term = 30 * time.Second

// Each case leases the record a for 30 s, now. It says what happens then, and when
// its lease ends in the store.
func TestTheLifeOfALease(t *testing.T) {
	for name, c := range map[string]struct {
		then func(s *Set[string], l *leases, a *Hold[string])
		ends time.Duration
	}{
		"is not renewed while it is young": {func(s *Set[string], _ *leases, _ *Hold[string]) {
			time.Sleep(term / 3)
			s.Renew(context.Background())
		}, term},
		"is renewed before it ends": {func(s *Set[string], _ *leases, _ *Hold[string]) {
			time.Sleep(20 * time.Second)
			s.Renew(context.Background())
		}, 20*time.Second + term},
		"is renewed after a renewal whose answer was lost": {func(s *Set[string], l *leases, _ *Hold[string]) {
			l.loseAnswer = true
			time.Sleep(15 * time.Second)
			s.Renew(context.Background())
			time.Sleep(10 * time.Second)
			s.Renew(context.Background())
		}, 25*time.Second + term},
		"is lost to another process once it has ended": {func(s *Set[string], l *leases, a *Hold[string]) {
			l.down = true
			time.Sleep(29 * time.Second)
			s.Renew(context.Background())
			time.Sleep(2 * time.Second)
			l.down, l.ends["a"] = false, time.Now().Add(term) // the other one's
			s.Renew(context.Background())
			if s.MayBegin(a) {
				panic("it has not expired")
			}
			s.Release(context.Background(), []relay.Lease[string]{s.Lease(a)}, time.Now())
		}, 31*time.Second + term},
		"is moved by the call that says so": {func(s *Set[string], l *leases, a *Hold[string]) {
			until := time.Now().Add(2 * term)
			s.Extending(a, until)
			l.ends["a"] = until
			s.Release(context.Background(), []relay.Lease[string]{s.Lease(a)}, time.Now())
		}, 0},
		"is given back after the hold if it was leased again": {func(s *Set[string], l *leases, _ *Hold[string]) {
			l.ends["a"] = time.Now().Add(2 * term)
			again := NewHold("a", l.ends["a"])
			if s.Add(&again) || !s.Drop("a") {
				panic("it was not held")
			}
			s.ReleaseSpare(context.Background())
		}, 0},
		"is left alone once the record is dropped": {func(s *Set[string], _ *leases, _ *Hold[string]) {
			s.Drop("a")
			time.Sleep(20 * time.Second)
			s.Renew(context.Background())
			s.ReleaseSpare(context.Background())
		}, term},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				l := &leases{ends: map[string]time.Time{"a": start.Add(term)}}
				s := NewSet(Options[string]{Store: l, Duration: term, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
				a := NewHold("a", start.Add(term))
				if !s.Add(&a) || !s.Has("a") {
					t.Fatal("a is not held")
				}
				c.then(s, l, &a)
				if want := map[string]time.Time{"a": start.Add(c.ends)}; !maps.Equal(l.ends, want) {
					t.Errorf("ends after %s, want %s", l.ends["a"].Sub(start), c.ends)
				}
			})
		})
	}
}

func TestOneGoroutineLeasesARecordThatIsNotHeld(t *testing.T) {
	s := NewSet(Options[string]{Now: time.Now})
	if !s.Reserve("a") || s.Reserve("a") {
		t.Error("two goroutines lease it at once")
	}
	a := NewHold("a", time.Now().Add(term))
	s.Add(&a)
	s.Unreserve("a")
	if s.Reserve("a") {
		t.Error("it is leased while it is held")
	}
	s.Drop("a")
	if !s.Reserve("a") {
		t.Error("it cannot be leased any more")
	}
}
