package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// How the endpoint that hangs is measured: so many endpoints work, each run
// sends at this rate, and of a run with the hanging one every so many-th message
// goes there, for the time that it hangs.
const (
	healthyEndpoints = 99
	hangingRuns      = 5
	hangingRate      = 1000
	hangingShare     = 10
	hangs            = 30 * time.Second
)

// hangingRelays are the relays of the inventory for it: one for each endpoint.
func hangingRelays(sink string) string {
	var b strings.Builder
	for n := range healthyEndpoints {
		fmt.Fprintf(&b, `, {id: h%d, prefix: "44780010%02d", action: http_get, parameters: ["http://%s/healthy/%d?m=%%m"]}`, n, n, sink, n)
	}
	fmt.Fprintf(&b, `, {id: hangs, prefix: "4478002", action: http_get, parameters: ["http://%s/hangs?m=%%m"]}`, sink)
	return b.String()
}

// endpoints is the sink of those endpoints: it notes when each message came.
type endpoints struct {
	server *http.Server
	addr   string

	mu      sync.Mutex
	sent    map[string]time.Time
	took    []time.Duration
	release chan struct{} // closed when what hangs is let go
}

func newEndpoints() (*endpoints, error) {
	c := &endpoints{sent: make(map[string]time.Time), release: make(chan struct{})}
	var err error
	c.server, c.addr, err = servers.Serve("127.0.0.1:0", c)
	return c, err
}

func (c *endpoints) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now, text := time.Now(), r.URL.Query().Get("m")
	c.mu.Lock()
	release := c.release
	if began, ok := c.sent[text]; ok && r.URL.Path != "/hangs" {
		c.took = append(c.took, now.Sub(began))
		delete(c.sent, text)
	}
	c.mu.Unlock()
	if r.URL.Path == "/hangs" {
		select {
		case <-time.After(hangs):
		case <-release:
		case <-r.Context().Done():
		}
	}
	_, _ = io.WriteString(w, "ok")
}

func (c *endpoints) send(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent[text] = time.Now()
}

func (c *endpoints) arrived() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.took)
}

// begin forgets an earlier run; what hangs is held again.
func (c *endpoints) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took, c.release = nil, make(chan struct{})
}

// endHanging ends what hangs.
func (c *endpoints) endHanging() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.release)
}

// p is a quantile of the times that messages took.
func (c *endpoints) p(q float64) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.took)
	return quantile(c.took, q)
}

// hanging measures the time from the carrier's post to the arrival at endpoints
// that work, in turns without and with one that hangs.
func hanging(ctx context.Context, p *peers, s settings, r *report) error {
	c, err := newEndpoints()
	if err != nil {
		return err
	}
	defer func() { _ = c.server.Close() }()
	p.relays = hangingRelays(c.addr)
	d, err := p.daemon(ctx, s)
	if err != nil {
		return err
	}
	defer d.stop()
	for run := range 2 * hangingRuns {
		sick := run%2 == 1
		took, err := c.run(ctx, d, s, run, sick)
		if err != nil {
			return err
		}
		if sick {
			r.withHanging = append(r.withHanging, took)
		} else {
			r.withoutHanging = append(r.withoutHanging, took)
		}
	}
	return nil
}

// run sends for a while and returns the p99 of the endpoints that work.
func (c *endpoints) run(ctx context.Context, d *daemon, s settings, run int, sick bool) (time.Duration, error) {
	c.begin()
	most := int64(s.seconds.Seconds() * hangingRate / 2)
	healthy, start := 0, time.Now()
	client := newClient(s.conns)
	var mu sync.Mutex
	err := spread(s, span{end: most}, func(n int64) error {
		time.Sleep(time.Until(start.Add(time.Duration(n) * time.Second / hangingRate)))
		text, to := fmt.Sprintf("run %d message %d", run, n), fmt.Sprintf("44780010%02d1234", n%healthyEndpoints)
		if n%hangingShare == 0 {
			if !sick {
				return nil
			}
			to = "44780021234"
		} else {
			c.send(text)
			mu.Lock()
			healthy++
			mu.Unlock()
		}
		return post(ctx, client, d, strconv.Itoa(run)+"-"+strconv.FormatInt(n, 10), to, text)
	})
	if err != nil {
		return 0, err
	}
	if err := servers.Until(ctx, time.Minute, "every message at the endpoints that work", func() bool { return c.arrived() == healthy }); err != nil {
		return 0, err
	}
	c.endHanging()
	return c.p(0.99), servers.Until(ctx, 2*time.Minute, "nothing under way", func() bool {
		return d.metric("penstock_deliveries_running") == 0 && d.metric("penstock_deliveries_waiting") == 0
	})
}
