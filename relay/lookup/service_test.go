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

// fakeCredit is the credit of one account.
type fakeCredit struct {
	mu      sync.Mutex
	balance int64
	charges []credit.Change
	errs    []error // returned by the next charges
}

func (f *fakeCredit) Balance(context.Context, relay.AccountID) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.balance, nil
}

func (f *fakeCredit) Apply(_ context.Context, c credit.Change) (credit.Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.charges = append(f.charges, c)
	if len(f.errs) > 0 {
		err := f.errs[0]
		f.errs = f.errs[1:]
		return credit.Entry{}, err
	}
	if f.balance+c.Credits < 0 {
		return credit.Entry{}, relay.Errorf(relay.KindNoCredit, "no credit")
	}
	f.balance += c.Credits
	return credit.Entry{}, nil
}

// fakeBackend is a back end that returns code and err.
type fakeBackend struct {
	requests atomic.Int32
	gate     chan struct{} // if not nil, requests wait until it is closed
	code     Code
	err      error
}

func (f *fakeBackend) Find(ctx context.Context, number relay.MSISDN) (Result, error) {
	f.requests.Add(1)
	if f.gate != nil {
		select {
		case <-f.gate:
		case <-ctx.Done():
			return Result{}, relay.Errorf(relay.KindUnavailable, "request timed out: %w", ctx.Err())
		}
	}
	return Result{Number: number, Code: f.code, MCC: "234"}, f.err
}

func newService(t *testing.T, backend *fakeBackend, account *fakeCredit, o Options) *Service {
	t.Helper()
	cache := new(Store)
	if o.CacheTTL > 0 {
		cache = NewStore(dbtest.Open(t, db.Options{}))
	}
	s, err := New(Deps{Backend: backend, Cache: cache, Credit: account, Logger: slog.New(slog.DiscardHandler)}, o)
	relaytest.NoError(t, err)
	return s
}

func TestLookupCosts(t *testing.T) {
	down := relay.Errorf(relay.KindUnavailable, "down")
	for name, tc := range map[string]struct {
		balance      int64
		backend      *fakeBackend
		errs         []error
		kind         relay.Kind
		wantBalance  int64
		wantRequests int32

		cacheDown bool
	}{
		"a delivered answer costs one credit":                  {balance: 5, backend: &fakeBackend{}, wantBalance: 4, wantRequests: 1},
		"an absent subscriber costs one credit":                {balance: 5, backend: &fakeBackend{code: Absent}, wantBalance: 4, wantRequests: 1},
		"an unknown subscriber costs one credit":               {balance: 5, backend: &fakeBackend{code: Unknown}, wantBalance: 4, wantRequests: 1},
		"no answer from the network costs nothing":             {balance: 5, backend: &fakeBackend{code: NoAnswer}, wantBalance: 5, wantRequests: 1},
		"a back end that is down costs nothing":                {balance: 5, backend: &fakeBackend{err: down}, kind: relay.KindUnavailable, wantBalance: 5, wantRequests: 1},
		"an account without credit makes no request":           {balance: 0, backend: &fakeBackend{}, kind: relay.KindNoCredit, wantRequests: 0},
		"credit that was spent meanwhile withholds the answer": {balance: 1, backend: &fakeBackend{}, errs: []error{relay.Errorf(relay.KindNoCredit, "gone")}, kind: relay.KindNoCredit, wantBalance: 1, wantRequests: 1},
		"a charge with a lost response is repeated":            {balance: 1, backend: &fakeBackend{}, errs: []error{down}, wantBalance: 0, wantRequests: 1},
		"a failed charge withholds the answer":                 {balance: 1, backend: &fakeBackend{}, errs: []error{down, down}, kind: relay.KindUnavailable, wantBalance: 1, wantRequests: 1},
		"an unavailable cache costs one request":               {balance: 5, backend: &fakeBackend{}, cacheDown: true, wantBalance: 4, wantRequests: 1},
	} {
		t.Run(name, func(t *testing.T) {
			account := &fakeCredit{balance: tc.balance, errs: tc.errs}
			s := newService(t, tc.backend, account, Options{CacheTTL: time.Minute})
			if tc.cacheDown {
				relaytest.NoError(t, s.deps.Cache.db.Close())
			}
			r, err := s.Lookup(t.Context(), 1, "447700900123")
			if relay.KindOf(err) != tc.kind || (err == nil) != (tc.kind == 0) {
				t.Fatalf("got error %v, want kind %v", err, tc.kind)
			}
			if err == nil {
				relaytest.Equal(t, "the code", r.Code, tc.backend.code)
			} else if tc.kind == relay.KindNoCredit {
				relaytest.Equal(t, "the result without credit", r, Result{})
			}
			if account.balance != tc.wantBalance || tc.backend.requests.Load() != tc.wantRequests {
				t.Errorf("balance %d, want %d; %d requests, want %d", account.balance, tc.wantBalance, tc.backend.requests.Load(), tc.wantRequests)
			}
			for _, c := range account.charges {
				relaytest.Equal(t, "id, credits and reference of the charge", []any{c.ID, c.Credits, c.Reference},
					[]any{account.charges[0].ID, int64(-1), "447700900123"})
			}
		})
	}
}

func TestAnswersAreCached(t *testing.T) {
	for name, tc := range map[string]struct {
		ttl          time.Duration
		code         Code
		wantRequests int32
		wantBalance  int64
	}{
		"a cached answer costs a credit and no request": {time.Minute, Absent, 1, 8},
		"NoAnswer is not cached":                        {time.Minute, NoAnswer, 2, 10},
		"a TTL of 0 disables the cache":                 {0, Delivered, 2, 8},
	} {
		t.Run(name, func(t *testing.T) {
			backend, account := &fakeBackend{code: tc.code}, &fakeCredit{balance: 10}
			s := newService(t, backend, account, Options{CacheTTL: tc.ttl})
			for range 2 {
				if _, err := s.Lookup(t.Context(), 1, "447700900123"); err != nil {
					t.Fatal(err)
				}
			}
			if backend.requests.Load() != tc.wantRequests || account.balance != tc.wantBalance {
				t.Errorf("%d requests, want %d; balance %d, want %d", backend.requests.Load(), tc.wantRequests, account.balance, tc.wantBalance)
			}
		})
	}
}

func TestLookupsOfOneNumberMakeOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend, account := &fakeBackend{gate: make(chan struct{})}, &fakeCredit{balance: 100}
		s := newService(t, backend, account, Options{})
		cancelled, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				ctx := t.Context()
				if i == 0 {
					ctx = cancelled
				}
				_, err := s.Lookup(ctx, 1, "447700900123")
				if i == 0 != (err != nil) {
					t.Errorf("lookup %d: %v, want an error of the cancelled one only", i, err)
				}
			})
		}
		synctest.Wait()
		cancel() // does not cancel the lookups of the other callers
		synctest.Wait()
		close(backend.gate)
		wg.Wait()
		if backend.requests.Load() != 1 || account.balance != 51 {
			t.Errorf("%d requests, want 1; balance %d, want 51", backend.requests.Load(), account.balance)
		}
	})
}

func TestARequestTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, &fakeBackend{gate: make(chan struct{})}, &fakeCredit{balance: 1}, Options{Timeout: time.Second})
		startedAt := time.Now()
		if _, err := s.Lookup(t.Context(), 1, "447700900123"); relay.KindOf(err) != relay.KindUnavailable || time.Since(startedAt) != time.Second {
			t.Errorf("got error %v after %s, want kind unavailable after 1s", err, time.Since(startedAt))
		}
	})
}

func TestCodesHaveDescriptions(t *testing.T) {
	for code, want := range map[Code]string{
		Delivered: "Delivered by the network", Absent: "Absent subscriber", Unknown: "Unknown subscriber",
		NoAnswer: "No answer from the network", 9: "Unknown code",
	} {
		if code.String() != want || code.Known() != (code < 4) {
			t.Errorf("description of code %d = %q, known %t; want %q", int(code), code, code.Known(), want)
		}
	}
	if _, err := New(Deps{}, Options{}); err == nil {
		t.Error("New returned no error without dependencies")
	}
}
