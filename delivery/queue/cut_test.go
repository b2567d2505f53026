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

// withSecret configures a secret, so that requests have a webhook-id.
func withSecret(d *worker.Deps) {
	d.Secrets = func(context.Context, relay.AccountID) ([]string, error) {
		return []string{"whsec_" + base64.StdEncoding.EncodeToString([]byte("a secret of 24 bytes or more"))}, nil
	}
}

// The connection to Redis is cut for 4 s while attempts are in flight: once during first attempts,
// once during attempts by asynq.
func TestNothingIsLostIfRedisIsCutOffDuringAttempts(t *testing.T) {
	t.Parallel()
	const n, downtime = 1000, 4 * time.Second
	for name, send := range map[string]func(r *rig, ds []outbox.Delivery){
		"first attempts":    (*rig).sendInOneBatch,
		"attempts by asynq": func(r *rig, ds []outbox.Delivery) { r.create(ds, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.NewProxy(t, redistest.Start(t))
			r := newRigWith(t, newBackends(t, proxy.URL), Options{Lease: 10 * time.Second}, nil, withSecret)
			reached, release := make(chan struct{}), make(chan struct{})
			var once sync.Once
			var mu sync.Mutex
			webhookIDs := make(map[string]map[string]bool)
			s := newSink(t, always(200))
			s.onRequest = func(req *http.Request) {
				mu.Lock()
				id := req.URL.Query().Get("id")
				if webhookIDs[id] == nil {
					webhookIDs[id] = make(map[string]bool)
				}
				webhookIDs[id][req.Header.Get("Webhook-Id")] = true
				mu.Unlock()
				if _, total := s.count(); total > 400 {
					once.Do(func() { close(reached) })
					<-release
				}
			}
			send(r, r.deliveries(n, s.URL))
			<-reached
			proxy.Cut()
			downtimeEnd := time.After(downtime)
			close(release) // the endpoint answers 200 while Redis is cut off
			<-downtimeEnd
			proxy.Mend()
			r.await(outbox.Delivered, n)
			r.expectRepeats(s, n, n/1000)
			for id, ids := range webhookIDs {
				if len(ids) != 1 || !ids[id] {
					t.Errorf("delivery %s: webhook-ids = %v, want its id only", id, ids)
				}
			}
		})
	}
}
