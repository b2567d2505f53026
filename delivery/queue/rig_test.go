package queue

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/email"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/delivery/worker"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/cache"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestMain(m *testing.M) { relaytest.ManyAtOnce(m) }

// sink is an endpoint that counts requests by the delivery id in their query.
type sink struct {
	*httptest.Server
	mu        sync.Mutex
	requests  map[string]int             // by delivery id
	total     int                        // number of requests
	answer    func(id string, n int) int // returns the status for the n-th request with an id
	onRequest func(r *http.Request)      // called before the response
}

func newSink(t testing.TB, answer func(id string, n int) int) *sink {
	s := &sink{requests: make(map[string]int), answer: answer}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// newRecordingSink is like newSink and also returns the ids of the requests in their order.
func newRecordingSink(t testing.TB, answer func(id string, n int) int) (*sink, *[]string) {
	var mu sync.Mutex
	order := new([]string)
	return newSink(t, func(id string, n int) int {
		mu.Lock()
		defer mu.Unlock()
		*order = append(*order, id)
		return answer(id, n)
	}), order
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	s.mu.Lock()
	s.requests[id]++
	s.total++
	n := s.requests[id]
	s.mu.Unlock()
	if s.onRequest != nil {
		s.onRequest(r)
	}
	w.WriteHeader(s.answer(id, n))
}

func (s *sink) count() (distinct, total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests), s.total
}

// expect compares the number of different deliveries and the number of requests.
func (s *sink) expect(t testing.TB, deliveries, requests int) {
	t.Helper()
	distinct, total := s.count()
	relaytest.Equal(t, "deliveries and requests", [2]int{distinct, total}, [2]int{deliveries, requests})
}

func always(status int) func(string, int) int { return func(string, int) int { return status } }

// rig is a queue with real records, a real Redis and an HTTP client.
type rig struct {
	t testing.TB
	backends
	store    *outbox.Store
	queue    *Queue
	lastID   int
	stopOnce sync.Once
}

type noMail struct{}

func (noMail) Send(context.Context, outbox.Mail) (email.Result, error) {
	return email.Result{Status: 250, Simulated: true}, nil
}

// backends are the back ends of a queue: the records and Redis.
type backends struct {
	records *recordstest.Records
	redis   *cache.DB
	store   Store // used by the queue; a test may replace records.Deliveries
	gate    *gateway.Gate
}

// newBackends returns back ends with new records and the Redis at a URL.
func newBackends(t testing.TB, url string) backends {
	t.Helper()
	return newBackendsWith(t, recordstest.Open(t), cache.Options{URL: url, Timeout: time.Second})
}

func newBackendsWith(t testing.TB, r *recordstest.Records, redis cache.Options) backends {
	t.Helper()
	db := relaytest.Must(cache.Open(redis))(t)
	t.Cleanup(func() { _ = db.Close() })
	return backends{records: r, redis: db, store: r.Deliveries}
}

func newRig(t testing.TB, b backends, o Options, schedule delivery.Schedule) *rig {
	t.Helper()
	return newRigWith(t, b, o, schedule, func(*worker.Deps) {})
}

func newRigWith(t testing.TB, b backends, o Options, schedule delivery.Schedule, configure func(*worker.Deps)) *rig {
	t.Helper()
	client := relaytest.Must(httpout.New(httpout.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}))(t)
	t.Cleanup(client.Close)
	deps := worker.Deps{HTTP: client, Mail: noMail{}}
	configure(&deps)
	w := relaytest.Must(worker.New(deps))(t)
	q := relaytest.Must(New(Deps{Store: b.store, Breakers: b.redis.Breakers(), Redis: b.redis, Schedule: schedule, Gate: b.gate, Logger: testLogger()}, o))(t)
	r := &rig{t: t, backends: b, store: b.records.Deliveries, queue: q}
	relaytest.NoError(t, q.Start(w))
	t.Cleanup(r.stop)
	return r
}

func testLogger() *slog.Logger {
	if os.Getenv("PENSTOCK_TEST_LOG") != "" {
		return slog.Default()
	}
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

func (r *rig) stop() {
	r.stopOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := r.queue.Stop(ctx); err != nil {
			r.t.Error(err)
		}
	})
}

// deliveries returns n new deliveries to a URL.
func (r *rig) deliveries(n int, url string) []outbox.Delivery {
	ds := make([]outbox.Delivery, n)
	for i := range ds {
		r.lastID++
		id := fmt.Sprintf("%s-%05d", relay.NewID(time.Now()), r.lastID)
		ds[i] = outbox.Delivery{
			ID: id, Account: 7, Kind: outbox.KindRelay, MessageID: "m" + id, CreatedAt: time.Now(),
			Request: &outbox.Request{Method: "GET", URL: url + "/?id=" + id},
		}
	}
	return ds
}

func (r *rig) create(ds []outbox.Delivery, lease time.Duration) {
	r.t.Helper()
	if created, err := r.store.Create(context.Background(), ds, time.Now().Add(lease)); err != nil || len(created) != len(ds) {
		r.t.Fatalf("create: got %d new deliveries, want %d; error %v", len(created), len(ds), err)
	}
}

// newHangingSink starts an endpoint that responds when the test ends. Call it after newRig, so
// that its cleanup releases the responses before the queue stops.
func newHangingSink(t *testing.T) *sink {
	t.Helper()
	release := make(chan struct{})
	s := newSink(t, always(200))
	s.onRequest = func(*http.Request) { <-release }
	t.Cleanup(func() { close(release) })
	return s
}

// sendUntilDead sends n deliveries, waits until they are dead and compares their numbers of
// attempts.
func (r *rig) sendUntilDead(n int, url string, attempts int) []outbox.Delivery {
	r.t.Helper()
	ds := r.deliveries(n, url)
	r.send(ds)
	r.await(outbox.Dead, n)
	for _, d := range ds {
		r.expectAttempts(d, attempts, attempts)
	}
	return ds
}

func (r *rig) send(ds []outbox.Delivery) {
	r.t.Helper()
	for start := 0; start < len(ds); start += 200 {
		chunk := ds[start:min(start+200, len(ds))]
		r.create(chunk, r.queue.Lease())
		r.queue.Dispatch(chunk)
	}
}

// sendInOneBatch is like send, but makes no attempt before all deliveries are in the store. A slow
// store may take longer to create the deliveries than an attempt may last, and some endpoints
// respond only when all deliveries have been created.
func (r *rig) sendInOneBatch(ds []outbox.Delivery) {
	r.t.Helper()
	r.create(ds, r.queue.Lease())
	r.queue.Dispatch(ds)
}

// await waits until n deliveries are in a state.
func (r *rig) await(state outbox.State, n int) {
	r.t.Helper()
	redistest.Await(r.t, fmt.Sprintf("%d deliveries are %s", n, state), func(ctx context.Context) bool {
		counts, err := r.store.Counts(ctx)
		return err == nil && counts[state] == n
	})
}

func (r *rig) get(d outbox.Delivery) outbox.Delivery {
	r.t.Helper()
	return relaytest.Must(r.store.Get(context.Background(), d.Account, d.ID))(r.t)
}

// expectAttempts compares the counted and the stored attempts of a delivery.
func (r *rig) expectAttempts(d outbox.Delivery, tries, stored int) {
	r.t.Helper()
	got := r.get(d)
	relaytest.Equal(r.t, "counted and stored attempts of "+d.ID, [2]int{got.Tries, len(got.Attempts)}, [2]int{tries, stored})
}
