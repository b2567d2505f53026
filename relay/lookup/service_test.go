package lookup

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// purse is the credit of one account.
type purse struct {
	mu      sync.Mutex
	has     int64
	charged []credit.Change
	errs    []error // of the charges to come
}

func (p *purse) Balance(context.Context, relay.AccountID) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.has, nil
}

func (p *purse) Apply(_ context.Context, c credit.Change) (credit.Entry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.charged = append(p.charged, c)
	if len(p.errs) > 0 {
		err := p.errs[0]
		p.errs = p.errs[1:]
		return credit.Entry{}, err
	}
	if p.has+c.Credits < 0 {
		return credit.Entry{}, relay.Errorf(relay.KindNoCredit, "none left")
	}
	p.has += c.Credits
	return credit.Entry{}, nil
}

// network is a back end that answers as its fields say.
type network struct {
	asked atomic.Int32
	gate  chan struct{} // closed: let answers go
	code  Code
	err   error
}

func (n *network) Find(ctx context.Context, number relay.MSISDN) (Result, error) {
	n.asked.Add(1)
	if n.gate != nil {
		select {
		case <-n.gate:
		case <-ctx.Done():
			return Result{}, relay.Errorf(relay.KindUnavailable, "too late: %w", ctx.Err())
		}
	}
	return Result{Number: number, Code: n.code, MCC: "234"}, n.err
}

func service(t *testing.T, n *network, p *purse, o Options) *Service {
	t.Helper()
	cache := new(Store)
	if o.CacheTTL > 0 {
		cache = NewStore(dbtest.Open(t, db.Options{}))
	}
	s, err := New(Deps{Backend: n, Cache: cache, Credit: p, Logger: slog.New(slog.DiscardHandler)}, o)
	relaytest.NoError(t, err)
	return s
}

func TestWhatALookupCosts(t *testing.T) {
	down := relay.Errorf(relay.KindUnavailable, "down")
	for name, tc := range map[string]struct {
		has   int64
		net   *network
		errs  []error
		kind  relay.Kind
		left  int64
		asked int32

		cacheDown bool
	}{
		"one that is answered costs one credit":              {has: 5, net: &network{}, left: 4, asked: 1},
		"an absent subscriber is an answer":                  {has: 5, net: &network{code: Absent}, left: 4, asked: 1},
		"an unknown subscriber is an answer":                 {has: 5, net: &network{code: Unknown}, left: 4, asked: 1},
		"no answer from the network costs nothing":           {has: 5, net: &network{code: NoAnswer}, left: 5, asked: 1},
		"a back end that is down costs nothing":              {has: 5, net: &network{err: down}, kind: relay.KindUnavailable, left: 5, asked: 1},
		"without credit nobody is asked":                     {has: 0, net: &network{}, kind: relay.KindNoCredit, asked: 0},
		"credit that went meanwhile keeps the answer":        {has: 1, net: &network{}, errs: []error{relay.Errorf(relay.KindNoCredit, "gone")}, kind: relay.KindNoCredit, left: 1, asked: 1},
		"a charge whose answer was lost is made again":       {has: 1, net: &network{}, errs: []error{down}, left: 0, asked: 1},
		"a charge that cannot be made withholds the answer":  {has: 1, net: &network{}, errs: []error{down, down}, kind: relay.KindUnavailable, left: 1, asked: 1},
		"a cache that is down costs a request and no answer": {has: 5, net: &network{}, cacheDown: true, left: 4, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := &purse{has: tc.has, errs: tc.errs}
			s := service(t, tc.net, p, Options{CacheTTL: time.Minute})
			if tc.cacheDown {
				relaytest.NoError(t, s.deps.Cache.db.Close())
			}
			r, err := s.Lookup(t.Context(), 1, "447700900123")
			if relay.KindOf(err) != tc.kind || (err == nil) != (tc.kind == 0) {
				t.Fatal(err)
			}
			if err == nil {
				relaytest.Equal(t, "the code", r.Code, tc.net.code)
			} else if tc.kind == relay.KindNoCredit {
				relaytest.Equal(t, "the result without credit", r, Result{})
			}
			if p.has != tc.left || tc.net.asked.Load() != tc.asked {
				t.Errorf("%d credits left, asked %d times", p.has, tc.net.asked.Load())
			}
			for _, c := range p.charged {
				relaytest.Equal(t, "id, credits and reference of the charge", []any{c.ID, c.Credits, c.Reference},
					[]any{p.charged[0].ID, int64(-1), "447700900123"})
			}
		})
	}
}

func TestAnswersAreCached(t *testing.T) {
	for name, tc := range map[string]struct {
		keep  time.Duration
		code  Code
		asked int32
		left  int64
	}{
		"what a network said is not asked again, and paid again": {time.Minute, Absent, 1, 8},
		"no answer is asked again":                               {time.Minute, NoAnswer, 2, 10},
		"nothing is remembered where that is switched off":       {0, Delivered, 2, 8},
	} {
		t.Run(name, func(t *testing.T) {
			n, p := &network{code: tc.code}, &purse{has: 10}
			s := service(t, n, p, Options{CacheTTL: tc.keep})
			for range 2 {
				if _, err := s.Lookup(t.Context(), 1, "447700900123"); err != nil {
					t.Fatal(err)
				}
			}
			if n.asked.Load() != tc.asked || p.has != tc.left {
				t.Errorf("asked %d times, %d credits left", n.asked.Load(), p.has)
			}
		})
	}
}

func TestLookupsOfOneNumberMakeOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, p := &network{gate: make(chan struct{})}, &purse{has: 100}
		s := service(t, n, p, Options{})
		impatient, leave := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for i := range 50 {
			running.Go(func() {
				ctx := t.Context()
				if i == 0 {
					ctx = impatient
				}
				_, err := s.Lookup(ctx, 1, "447700900123")
				if i == 0 != (err != nil) {
					t.Errorf("%d: %v", i, err)
				}
			})
		}
		synctest.Wait()
		leave() // the first caller's cancellation does not cancel the others
		synctest.Wait()
		close(n.gate)
		running.Wait()
		if n.asked.Load() != 1 || p.has != 51 {
			t.Errorf("asked %d times, %d credits left", n.asked.Load(), p.has)
		}
	})
}

func TestARequestEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := service(t, &network{gate: make(chan struct{})}, &purse{has: 1}, Options{Timeout: time.Second})
		begun := time.Now()
		if _, err := s.Lookup(t.Context(), 1, "447700900123"); relay.KindOf(err) != relay.KindUnavailable || time.Since(begun) != time.Second {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}

func TestCodesHaveWords(t *testing.T) {
	for code, want := range map[Code]string{
		Delivered: "Delivered by the network", Absent: "Absent subscriber", Unknown: "Unknown subscriber",
		NoAnswer: "No answer from the network", 9: "Unknown code",
	} {
		if code.String() != want || code.Known() != (code < 4) {
			t.Errorf("%d: %s", int(code), code)
		}
	}
	if _, err := New(Deps{}, Options{}); err == nil {
		t.Error("nothing to work with")
	}
}
