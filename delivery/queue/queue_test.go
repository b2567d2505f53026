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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/email"
	"github.com/penstock/penstock/delivery/embedded/kv"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/delivery/worker"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/redisstore"
	"github.com/penstock/penstock/relay/redisstore/redistest"
)

// sink is an endpoint that counts what it receives by the id in the query.
type sink struct {
	*httptest.Server
	mu     sync.Mutex
	got    map[string]int
	at     map[string][]time.Time
	total  int
	answer func(id string, n int) int // status for the n-th request of an id
	before func(r *http.Request)      // runs before the answer
}

func newSink(t testing.TB, answer func(id string, n int) int) *sink {
	s := &sink{got: make(map[string]int), at: make(map[string][]time.Time), answer: answer}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	s.mu.Lock()
	s.got[id]++
	s.at[id] = append(s.at[id], time.Now())
	s.total++
	n := s.got[id]
	s.mu.Unlock()
	if s.before != nil {
		s.before(r)
	}
	w.WriteHeader(s.answer(id, n))
}

func (s *sink) count() (different, total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.got), s.total
}

func (s *sink) times(id string) []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), s.at[id]...)
}

func always(status int) func(string, int) int { return func(string, int) int { return status } }

// rig is a queue on a real Redis with real ways out.
type rig struct {
	t      testing.TB
	db     *redisstore.DB
	store  *redisstore.Outbox
	queue  *Queue
	made   int
	stopOn sync.Once
}

type noMail struct{}

func (noMail) Send(context.Context, outbox.Mail) (email.Result, error) {
	return email.Result{Status: 250, Simulated: true}, nil
}

func newRig(t testing.TB, url string, o Options, schedule delivery.Schedule) *rig {
	t.Helper()
	return rigOn(t, redisstore.Options{URL: url, Timeout: time.Second}, o, schedule)
}

func rigOn(t testing.TB, redis redisstore.Options, o Options, schedule delivery.Schedule) *rig {
	t.Helper()
	db, err := redisstore.Open(t.Context(), redis)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	out, err := httpout.New(httpout.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.Close)
	w, err := worker.New(worker.Deps{HTTP: out, Mail: noMail{}}, worker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	q, err := New(Deps{Store: db.Outbox(), Redis: db, Send: w, Schedule: schedule, Logger: quiet()}, o)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, db: db, store: db.Outbox(), queue: q}
	if err := q.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.stop)
	return r
}

func quiet() *slog.Logger {
	if os.Getenv("PENSTOCK_TEST_LOG") != "" {
		return slog.Default()
	}
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

func (r *rig) stop() {
	r.stopOn.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := r.queue.Stop(ctx); err != nil {
			r.t.Error(err)
		}
	})
}

// deliveries makes n deliveries to a URL.
func (r *rig) deliveries(n int, url string) []outbox.Delivery {
	ds := make([]outbox.Delivery, n)
	for i := range ds {
		r.made++
		id := fmt.Sprintf("%s-%05d", relay.NewID(time.Now()), r.made)
		ds[i] = outbox.Delivery{
			ID: id, Account: 7, Kind: outbox.KindRelay, MessageID: "m" + id, CreatedAt: time.Now(),
			Request: &outbox.Request{Method: "GET", URL: url + "/?id=" + id},
		}
	}
	return ds
}

func (r *rig) create(ds []outbox.Delivery, lease time.Duration) {
	r.t.Helper()
	if existing, err := r.store.Create(context.Background(), ds, time.Now().Add(lease)); err != nil || len(existing) > 0 {
		r.t.Fatalf("create: existing %v, error %v", existing, err)
	}
}

func (r *rig) send(ds []outbox.Delivery) {
	r.t.Helper()
	for start := 0; start < len(ds); start += 200 {
		chunk := ds[start:min(start+200, len(ds))]
		r.create(chunk, r.queue.Lease())
		r.queue.Dispatch(chunk)
	}
}

// await waits until so many deliveries are in a state.
func (r *rig) await(state outbox.State, n int) {
	r.t.Helper()
	redistest.Await(r.t, 60*time.Second, fmt.Sprintf("%d deliveries are %s", n, state), func(ctx context.Context) bool {
		counts, err := r.store.Counts(ctx)
		return err == nil && counts[state] == n
	})
}

func (r *rig) get(d outbox.Delivery) outbox.Delivery {
	r.t.Helper()
	got, err := r.store.Get(context.Background(), d.Account, d.ID)
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

func TestAThousandDeliveriesArriveExactlyOnce(t *testing.T) {
	r := newRig(t, redistest.Start(t).URL, Options{}, nil)
	s := newSink(t, always(204))
	r.send(r.deliveries(1000, s.URL))
	r.await(outbox.Delivered, 1000)
	if different, total := s.count(); different != 1000 || total != 1000 {
		t.Errorf("%d deliveries in %d requests", different, total)
	}
}

func TestRetriesArriveOnEveryKindOfRedis(t *testing.T) {
	for name, at := range map[string]func(t *testing.T) redisstore.Options{
		"on a cluster": func(t *testing.T) redisstore.Options {
			return redisstore.Options{URL: redistest.StartCluster(t).URL}
		},
		"on the embedded server": func(t *testing.T) redisstore.Options {
			s, err := kv.Open(t.TempDir(), kv.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return redisstore.Options{Dialer: s.Dial}
		},
		"with several asynq servers": func(t *testing.T) redisstore.Options {
			return redisstore.Options{URL: redistest.Start(t).URL}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := rigOn(t, at(t), Options{Servers: 2}, delivery.Schedule{time.Second})
			s := newSink(t, func(_ string, n int) int { return map[bool]int{true: 503, false: 200}[n == 1] })
			r.send(r.deliveries(300, s.URL))
			r.await(outbox.Delivered, 300)
			if different, total := s.count(); different != 300 || total != 600 {
				t.Errorf("%d deliveries in %d requests, want 600", different, total)
			}
		})
	}
}

func TestAQueueStartsBeforeRedisDoes(t *testing.T) {
	server := redistest.Start(t)
	server.Stop()
	r := newRig(t, server.URL, Options{}, nil)
	s := newSink(t, always(200))
	server.Restart()
	r.create(r.deliveries(10, s.URL), 0)
	r.await(outbox.Delivered, 10)
	if _, total := s.count(); total != 10 {
		t.Errorf("%d requests", total)
	}
}

func TestWhatAsynqHasLostIsAttemptedInProcess(t *testing.T) {
	server := redistest.Start(t)
	rdb := server.Client()
	t.Cleanup(func() { _ = rdb.Close() })
	r := newRig(t, server.URL, Options{}, nil)
	s := newSink(t, always(200))
	ds := r.deliveries(5, s.URL)
	for _, d := range ds { // tasks that nothing will ever run
		key := "asynq:{deliveries}:t:" + d.ID
		if err := rdb.HSet(t.Context(), key, "state", "active", "msg", "").Err(); err != nil {
			t.Fatal(err)
		}
	}
	r.create(ds, 0)
	r.await(outbox.Delivered, 5)
	if _, total := s.count(); total != 5 {
		t.Errorf("%d requests", total)
	}
}

func TestTheScheduleIsFollowedAndAttemptsAreCountedByUs(t *testing.T) {
	r := newRig(t, redistest.Start(t).URL, Options{}, delivery.Schedule{time.Second, 2 * time.Second})
	s := newSink(t, always(500))
	ds := r.deliveries(2, s.URL)
	r.send(ds)
	r.await(outbox.Dead, 2)
	for _, d := range ds {
		got := r.get(d)
		if got.Tries != 3 || len(got.Attempts) != 3 || !strings.Contains(got.Reason, "no attempt left after 3") {
			t.Errorf("tries %d, attempts %d, reason %q", got.Tries, len(got.Attempts), got.Reason)
		}
		at := s.times(d.ID)
		if len(at) != 3 {
			t.Fatalf("%d requests", len(at))
		}
		if w := at[1].Sub(at[0]); w < 800*time.Millisecond {
			t.Errorf("first retry after %s", w)
		}
		if w := at[2].Sub(at[1]); w < 1600*time.Millisecond {
			t.Errorf("second retry after %s", w)
		}
	}
	if different, total := s.count(); different != 2 || total != 6 {
		t.Errorf("%d deliveries in %d requests", different, total)
	}
}

func TestAReplayOfADeadDeliveryArrives(t *testing.T) {
	r := newRig(t, redistest.Start(t).URL, Options{}, nil)
	s := newSink(t, func(_ string, n int) int { return map[bool]int{true: 410, false: 200}[n == 1] })
	ds := r.deliveries(3, s.URL)
	r.send(ds)
	r.await(outbox.Dead, 3)
	if got := r.get(ds[0]); got.Tries != 1 || len(got.Attempts) != 1 {
		t.Errorf("410 did not end it at once: %+v", got)
	}
	page, _, err := r.store.List(t.Context(), outbox.Filter{State: outbox.Dead})
	if err != nil {
		t.Fatal(err)
	}
	var refs []outbox.Ref
	for _, d := range page {
		refs = append(refs, outbox.Ref{Account: d.Account, ID: d.ID})
	}
	if changed, err := r.store.Replay(t.Context(), refs, time.Now(), false); err != nil || len(changed) != 3 {
		t.Fatalf("changed %v, error %v", changed, err)
	}
	r.await(outbox.Delivered, 3)
	if got := r.get(ds[0]); got.Tries != 1 || len(got.Attempts) != 2 {
		t.Errorf("after the replay: %+v", got)
	}
}

func TestRecordsOfACrashedProcessAreSentOnceTheirLeaseEnds(t *testing.T) {
	s := newSink(t, always(200))
	r := newRig(t, redistest.Start(t).URL, Options{}, nil)
	r.create(r.deliveries(50, s.URL), 500*time.Millisecond)
	r.await(outbox.Delivered, 50)
	if different, total := s.count(); different != 50 || total != 50 {
		t.Errorf("%d deliveries in %d requests", different, total)
	}
}

func TestAnEndpointThatHangsDelaysNoOther(t *testing.T) {
	release := make(chan struct{})
	hanging := newSink(t, always(200))
	hanging.before = func(*http.Request) { <-release }
	r := newRig(t, redistest.Start(t).URL, Options{Attempts: 16, PerEndpoint: 4, EndpointBacklog: 20}, nil)
	t.Cleanup(func() { close(release) })

	r.send(r.deliveries(100, hanging.URL))
	redistest.Await(t, 30*time.Second, "the endpoint hangs", func(context.Context) bool {
		_, total := hanging.count()
		return total == 4
	})
	var healthy []*sink
	for range 20 {
		s := newSink(t, always(200))
		healthy = append(healthy, s)
		r.send(r.deliveries(10, s.URL))
	}
	for _, s := range healthy {
		redistest.Await(t, 30*time.Second, "a healthy endpoint gets all its deliveries", func(context.Context) bool {
			different, _ := s.count()
			return different == 10
		})
	}
	if _, total := hanging.count(); total != 4 {
		t.Errorf("the endpoint that hangs has %d attempts under way, want 4", total)
	}
	r.await(outbox.Delivered, 200)
}

func TestRedisKilledBetweenAnswerAndBookkeepingLosesAndRepeatsNothing(t *testing.T) {
	server := redistest.Start(t)
	r := newRig(t, server.URL, Options{Lease: 20 * time.Second, PerEndpoint: 64}, nil)
	reached, open := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := newSink(t, always(200))
	s.before = func(*http.Request) {
		if _, total := s.count(); total > 400 {
			once.Do(func() { close(reached) })
			<-open
		}
	}
	r.send(r.deliveries(1000, s.URL))
	<-reached
	server.Stop()
	down := time.After(4 * time.Second)
	close(open)
	<-down
	server.Restart()
	r.await(outbox.Delivered, 1000)
	counts, err := r.store.Counts(t.Context())
	different, total := s.count()
	if err != nil || counts[outbox.Dead] != 0 || different != 1000 || total > 1001 {
		t.Errorf("%d deliveries in %d requests, states %v, error %v", different, total, counts, err)
	}
}

func TestARetrySurvivesThatRedisIsKilled(t *testing.T) {
	server := redistest.Start(t)
	r := newRig(t, server.URL, Options{}, delivery.Schedule{time.Second, time.Second, time.Second})
	s := newSink(t, func(_ string, n int) int { return map[bool]int{true: 200, false: 503}[n == 3] })
	ds := r.deliveries(100, s.URL)
	r.send(ds)
	r.await(outbox.Retrying, 100)
	server.Stop()
	server.Restart()
	r.await(outbox.Delivered, 100)
	if different, total := s.count(); different != 100 || total != 300 {
		t.Errorf("%d deliveries in %d requests, want 300", different, total)
	}
	if got := r.get(ds[0]); got.Tries != 3 {
		t.Errorf("tries %d", got.Tries)
	}
}

func TestStopFinishesWhatIsUnderWayAndGivesBackTheRest(t *testing.T) {
	server := redistest.Start(t)
	r := newRig(t, server.URL, Options{PerEndpoint: 2}, nil)
	begun, open := make(chan struct{}, 100), make(chan struct{})
	s := newSink(t, always(200))
	s.before = func(*http.Request) { begun <- struct{}{}; <-open }
	r.send(r.deliveries(10, s.URL))
	<-begun
	<-begun
	stopped := make(chan struct{})
	go func() { defer close(stopped); r.stop() }()
	redistest.Await(t, 10*time.Second, "what waited is given back", func(ctx context.Context) bool {
		refs, err := r.store.Due(ctx, time.Now(), 100)
		return err == nil && len(refs) == 8
	})
	close(open)
	<-stopped
	r.await(outbox.Delivered, 2)

	again := newRig(t, server.URL, Options{}, nil)
	again.await(outbox.Delivered, 10)
	if different, total := s.count(); different != 10 || total != 10 {
		t.Errorf("%d deliveries in %d requests", different, total)
	}
}
