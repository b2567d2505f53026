package e2e

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/relay/porttest"
)

// ClusterSize is the number of gateways of a cluster.
const ClusterSize = 3

// clusterLedgerKey is the master key of every gateway of a cluster.
const clusterLedgerKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// Cluster has several gateways on one PostgreSQL, one Redis and one InfluxDB, and a balancer
// in front of them.
type Cluster struct {
	Gateways []*Gateway
	// Front sends its requests through the balancer. It has no process; its directory,
	// settings and logs are those of the first gateway.
	Front *Gateway
}

// clusteredSite returns the real site, on which Start runs a cluster. Mail goes to the sink
// of the gateway that sends it, as on the embedded site.
func clusteredSite(t *testing.T) *Site {
	t.Helper()
	s := RealSite(t)
	s.Name, s.clustered = "three gateways", true
	return s
}

// OnOneAndOnThree runs a test on one gateway with the embedded back ends, and again on three
// behind a balancer. The balancer sends each request to the next gateway, so that the test fails if
// a gateway does not share its state. /metrics and /readyz describe the gateway that receives the
// request.
func OnOneAndOnThree(t *testing.T, test func(t *testing.T, s *Site)) {
	t.Run("one gateway", func(t *testing.T) { test(t, Embedded()) })
	t.Run("three gateways", func(t *testing.T) { test(t, clusteredSite(t)) })
}

// OnOneGateway runs a test on one gateway with the embedded back ends, and in a soak again
// on three behind a balancer.
func OnOneGateway(t *testing.T, test func(t *testing.T, s *Site)) {
	if Soak() {
		OnOneAndOnThree(t, test)
		return
	}
	t.Run("one gateway", func(t *testing.T) { test(t, Embedded()) })
}

// NewCluster prepares gateways and starts their balancer. Spawn starts the gateways.
func NewCluster(t *testing.T, s *Site, inventory string, settings ...string) *Cluster {
	t.Helper()
	c := &Cluster{}
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
	smtp := s.SMTP
	if s.clustered {
		smtp, settings = nil, append([]string{"PENSTOCK_SMTP_ADDR=", "PENSTOCK_SMTP_FROM="}, settings...)
	}
	shared := append(s.environ(t), "PENSTOCK_LEDGER_MASTER_KEY="+clusterLedgerKey, "PENSTOCK_PUBLIC_URL="+server.URL)
	for range ClusterSize {
		sharedSite := &Site{T: t, Name: s.Name, SMTP: smtp}
		c.Gateways = append(c.Gateways, NewGateway(t, sharedSite, inventory, slices.Concat(shared, []string{"PENSTOCK_LISTEN=" + porttest.Address(t)}, settings)...))
	}
	b.gateways = c.Gateways
	gateway := c.Gateways[0]
	c.Front = &Gateway{T: t, Site: gateway.Site, Dir: gateway.Dir, Env: gateway.Env, Logs: gateway.Logs, HTTP: newHTTPClient(), Members: c.Gateways}
	t.Cleanup(c.Front.HTTP.CloseIdleConnections)
	c.Front.base.Store(&server.URL)
	return c
}

// StartCluster runs a cluster in this process until the test ends.
func StartCluster(t *testing.T, s *Site, inventory string, settings ...string) *Cluster {
	t.Helper()
	c := NewCluster(t, s, inventory, settings...)
	for _, g := range c.Gateways {
		g.Run()
	}
	return c
}

// Spawn runs every gateway in a process of its own. All processes start at the same time on an empty
// database.
func (c *Cluster) Spawn() {
	ready := make([]<-chan string, len(c.Gateways))
	for i, g := range c.Gateways {
		ready[i] = g.Launch()
	}
	for i, g := range c.Gateways {
		g.awaitAddress(ready[i])
	}
}

// PostToEach posts a body to each gateway at the same time, and returns the answers in the order of
// the gateways.
func (c *Cluster) PostToEach(path string, newClient func(g *Gateway) Client, body func(n int) string) []Response {
	c.Front.T.Helper()
	answers, errs := make([]Response, len(c.Gateways)), make([]error, len(c.Gateways))
	var wg sync.WaitGroup
	for i, g := range c.Gateways {
		wg.Go(func() {
			for range 10 { // a sender repeats a post that was refused because a back end is slow
				answers[i], errs[i] = newClient(g).Try(http.MethodPost, path, body(i))
				if answers[i].Status != http.StatusServiceUnavailable {
					break
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		c.Front.T.Fatalf("POST %s: %v", path, err)
	}
	return answers
}

// balancer sends each request to the next gateway. It skips a gateway that refuses the
// connection, and does not repeat a request that a gateway may have received.
type balancer struct {
	gateways []*Gateway
	turn     atomic.Uint64
	web      *http.Transport
}

// RoundTrip sends a request to the next gateway that accepts connections.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	var err error
	if r.Body != nil {
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	turn := b.turn.Add(1)
	for n := range len(b.gateways) {
		g := b.gateways[(turn+uint64(n))%uint64(len(b.gateways))]
		forwarded := r.Clone(r.Context())
		forwarded.URL.Host = strings.TrimPrefix(g.URL(), "http://")
		if forwarded.Body, forwarded.ContentLength = http.NoBody, int64(len(body)); len(body) > 0 {
			forwarded.Body = io.NopCloser(bytes.NewReader(body))
		}
		resp, roundTripErr := b.web.RoundTrip(forwarded)
		if !refusedConnection(roundTripErr) {
			return resp, roundTripErr
		}
		err = roundTripErr
	}
	return nil, err
}

// refusedConnection reports whether err means that no connection was made, so that the
// gateway received no request.
func refusedConnection(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
