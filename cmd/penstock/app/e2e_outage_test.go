package app

import (
	"net/http"
	"os"
	"testing"
	"time"
)

// outage is how long a back end is away: 10 s, or PENSTOCK_TEST_OUTAGE.
func outage(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("PENSTOCK_TEST_OUTAGE")
	if text == "" {
		return 10 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("PENSTOCK_TEST_OUTAGE: %v", err)
	}
	return d
}

// TestOutageLosesNothing stops a back end under load: known senders go on
// getting their 2xx, and everything is there once it is back.
func TestOutageLosesNothing(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, backend string
		stop          func(s *site)
		start         func(t *testing.T, s *site)
	}{
		{
			"PostgreSQL", "records", func(s *site) { s.postgres.Kill() },
			func(_ *testing.T, s *site) { s.postgres.Start() },
		},
		{
			"Redis", "queue", func(s *site) { s.redis.Stop() },
			func(_ *testing.T, s *site) { s.redis.Restart() },
		},
		{
			"InfluxDB", "readings", func(s *site) { s.influx.Stop() },
			func(t *testing.T, s *site) { s.influx.Restart(t) },
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := realSite(t)
			c, url := newTally(t)
			g := start(t, s, fixture(t, "load.yaml", "SINK", url))
			g.as("acme-all-0123456").post("/webhooks/lorawan", `{}`).is(t, 200, "")
			l := g.load()
			<-time.After(time.Second)

			tc.stop(s)
			back := time.After(outage(t))
			eventually(t, tc.name+" is named as what is missing", func() (any, bool) {
				status, r := g.ready()
				b := r.Backends[tc.backend]
				return r, status == http.StatusServiceUnavailable && r.Status == "not ready" && b.Status == "down" && b.Error != ""
			})
			g.as("").get("/healthz").is(t, 200, `{"status": "alive"}`)
			if tc.backend == "records" {
				a := g.as("somebody-new").post("/webhooks/lorawan", `{}`)
				if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
					t.Errorf("a sender nobody knows gets %d %s, want 503 and Retry-After", a.status, a.body)
				}
			}
			<-back
			tc.start(t, s)

			<-time.After(time.Second)
			l.end()
			if len(l.refused) > 0 {
				t.Errorf("known senders were refused: %v", l.refused)
			}
			l.check(t, c)
			eventually(t, "the gateway is ready again", func() (any, bool) {
				status, r := g.ready()
				return r, status == http.StatusOK
			})
		})
	}
}
