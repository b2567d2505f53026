package queue

import (
	"context"
	"encoding/base64"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/worker"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/outbox"
)

// signed adds a secret, so that requests carry a webhook-id.
func signed(d *worker.Deps) {
	d.Secrets = func(context.Context, relay.AccountID) ([]string, error) {
		return []string{"whsec_" + base64.StdEncoding.EncodeToString([]byte("a secret of twenty-four bytes"))}, nil
	}
}

// The connection to Redis is cut for 4 s after endpoints have answered 200 and before
// the outcomes are saved: once during first attempts, once during retries.
func TestRedisCutOffBetweenTheAnswerAndTheBookkeeping(t *testing.T) {
	t.Parallel()
	const n, away = 1000, 4 * time.Second
	for name, begin := range map[string]func(r *rig, ds []outbox.Delivery){
		"first attempts":    (*rig).sendAtOnce,
		"attempts by asynq": func(r *rig, ds []outbox.Delivery) { r.create(ds, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.NewProxy(t, redistest.Start(t))
			r := rigWith(t, onRedis(t, proxy.URL), Options{Lease: 10 * time.Second}, nil, signed)
			reached, open := make(chan struct{}), make(chan struct{})
			var once sync.Once
			var mu sync.Mutex
			hooks := make(map[string]map[string]bool)
			s := newSink(t, always(200))
			s.before = func(req *http.Request) {
				mu.Lock()
				id := req.URL.Query().Get("id")
				if hooks[id] == nil {
					hooks[id] = make(map[string]bool)
				}
				hooks[id][req.Header.Get("Webhook-Id")] = true
				mu.Unlock()
				if _, total := s.count(); total > 400 {
					once.Do(func() { close(reached) })
					<-open
				}
			}
			begin(r, r.deliveries(n, s.URL))
			<-reached
			proxy.Cut()
			down := time.After(away)
			close(open) // the endpoint answers 200 now, and the outcome cannot be saved
			<-down
			proxy.Mend()
			r.await(outbox.Delivered, n)
			r.expectRepeats(s, n, n/1000)
			for id, ids := range hooks {
				if len(ids) != 1 || !ids[id] {
					t.Errorf("delivery %s arrived with the webhook-ids %v", id, ids)
				}
			}
		})
	}
}
