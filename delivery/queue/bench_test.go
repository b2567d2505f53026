package queue

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/outbox"
)

// BenchmarkDelivery creates deliveries in batches, makes their first attempts
// against a loopback sink and waits until every outcome is saved. The
// benchmark "bare" makes the same GETs with a plain client, for comparison.
func BenchmarkDelivery(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		s := newSink(b, always(204))
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
		var remaining atomic.Int64
		remaining.Store(int64(b.N))
		var workers sync.WaitGroup
		b.ResetTimer()
		for range 32 {
			workers.Go(func() {
				for remaining.Add(-1) >= 0 {
					resp, err := client.Get(s.URL + "/?id=x")
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			})
		}
		workers.Wait()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
	})
	b.Run("queue", func(b *testing.B) {
		s := newSink(b, always(204))
		r := newRig(b, newBackends(b, redistest.Shared(b).NewDatabase(b)), Options{}, nil)
		ds := r.deliveries(b.N, s.URL)
		b.ResetTimer()
		r.send(ds)
		redistest.Await(b, "all outcomes are saved", func(context.Context) bool {
			st := r.queue.Stats()
			return st.Delivered == int64(b.N) && st.Unsaved == 0
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
		b.StopTimer()
		r.await(outbox.Delivered, b.N)
	})
}
