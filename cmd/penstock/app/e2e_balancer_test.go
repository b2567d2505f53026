package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// members is how many gateways a cluster has.
const members = 3

// ledgerKey is the master key of every gateway of a cluster.
const ledgerKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// cluster is gateways on one PostgreSQL, one Redis and one InfluxDB, and a balancer
// in front of them.
type cluster struct {
	all []*gateway
	// front sends its requests through the balancer. It has no process and no data
	// directory of its own: those of the gateways are in all.
	front *gateway
}

// clusteredSite starts servers for gateways that work as one. Mail goes to the
// sink of the gateway that sends it, as on the embedded site.
func clusteredSite(t *testing.T) *site {
	t.Helper()
	s := realSite(t)
	s.name, s.clustered = "three gateways", true
	return s
}

// onOneAndOnThree runs a test on one gateway with the embedded back ends, and again
// on three behind a balancer. There each request goes to the next gateway, so that
// what one remembers for itself would show; /metrics and /readyz are those of the
// gateway that is asked.
func onOneAndOnThree(t *testing.T, test func(t *testing.T, s *site)) {
	t.Run("one gateway", func(t *testing.T) { test(t, &site{name: "embedded"}) })
	t.Run("three gateways", func(t *testing.T) { test(t, clusteredSite(t)) })
}

// newCluster lays down gateways that are not started yet.
func newCluster(t *testing.T, s *site, inventory string, settings ...string) *cluster {
	t.Helper()
	c := &cluster{}
	b := &balancer{web: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme = "http"
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
		},
		Transport: b,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "balancer: "+err.Error(), http.StatusBadGateway)
		},
	})
	t.Cleanup(func() { server.Close(); b.web.CloseIdleConnections() })
	smtp := s.smtp
	if s.clustered {
		smtp, settings = nil, append([]string{"PENSTOCK_SMTP_ADDR=", "PENSTOCK_SMTP_FROM="}, settings...)
	}
	shared := append(s.environ(), "PENSTOCK_LEDGER_MASTER_KEY="+ledgerKey, "PENSTOCK_PUBLIC_URL="+server.URL)
	for range members {
		own := &site{t: t, name: s.name, smtp: smtp}
		c.all = append(c.all, newGateway(t, own, inventory, slices.Concat(shared, []string{"PENSTOCK_LISTEN=" + fixedAddress(t)}, settings)...))
	}
	b.all = c.all
	first := c.all[0]
	c.front = &gateway{t: t, site: first.site, dir: first.dir, env: first.env, logs: first.logs, web: newWeb(), behind: c.all}
	t.Cleanup(c.front.web.CloseIdleConnections)
	c.front.base.Store(&server.URL)
	return c
}

// startCluster runs a cluster in this process until the test ends.
func startCluster(t *testing.T, s *site, inventory string, settings ...string) *cluster {
	t.Helper()
	c := newCluster(t, s, inventory, settings...)
	for _, g := range c.all {
		g.run()
	}
	return c
}

// spawn runs every gateway in a process of its own. All start at the same time,
// on an empty database.
func (c *cluster) spawn() {
	ready := make([]<-chan string, len(c.all))
	for i, g := range c.all {
		ready[i] = g.launch()
	}
	for i, g := range c.all {
		g.await(ready[i])
	}
}

// everywhere posts one body at each gateway, all at the same time, and returns the
// answers in the gateways' order.
func (c *cluster) everywhere(path string, as func(g *gateway) caller, body func(n int) string) []answer {
	c.front.t.Helper()
	answers, errs := make([]answer, len(c.all)), make([]error, len(c.all))
	var all sync.WaitGroup
	for i, g := range c.all {
		all.Go(func() { answers[i], errs[i] = as(g).try(http.MethodPost, path, body(i)) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		c.front.t.Fatalf("POST %s: %v", path, err)
	}
	return answers
}

// balancer hands each request to the next gateway. One that takes no connection is
// passed over; a request that a gateway may have seen is not repeated.
type balancer struct {
	all  []*gateway
	next atomic.Uint64
	web  *http.Transport
}

// RoundTrip sends a request to the next gateway that takes connections.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	var err error
	if r.Body != nil {
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	turn := b.next.Add(1)
	for n := range len(b.all) {
		g := b.all[(turn+uint64(n))%uint64(len(b.all))]
		out := r.Clone(r.Context())
		out.URL.Host = strings.TrimPrefix(g.url(), "http://")
		if out.Body, out.ContentLength = http.NoBody, int64(len(body)); len(body) > 0 {
			out.Body = io.NopCloser(bytes.NewReader(body))
		}
		resp, tried := b.web.RoundTrip(out)
		if !refusedConnection(tried) {
			return resp, tried
		}
		err = tried
	}
	return nil, err
}

// refusedConnection reports whether no request was sent for want of a connection.
func refusedConnection(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// fixedAddress is an address that a gateway can listen at again after a restart:
// its port is below those that the system gives to connections.
func fixedAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		if l, err := net.Listen("tcp", addr); err == nil {
			must(t, l.Close())
			return addr
		}
	}
	t.Fatal("no free port")
	return ""
}
