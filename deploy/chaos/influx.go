package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/penstock/penstock/deploy/servers"
)

// influxProxy passes HTTP requests on to InfluxDB, or answers them itself with a refusal.
type influxProxy struct {
	addr    string
	forward *httputil.ReverseProxy
	refusal atomic.Pointer[refusal] // nil: requests are passed on
}

// refusal is an answer with which InfluxDB refuses a request.
type refusal struct {
	status int
	writes bool // only writes are refused
	text   string
}

// refusals returns the refusals that must lose no reading. After 400 and 422 the gateway
// quarantines events, which replay processes again.
func refusals() []refusal {
	return []refusal{
		{400, true, "partial write: points beyond retention policy dropped=1"},
		{401, false, "authorization failed"},
		{404, false, `database not found: "chaos"`},
		{413, true, "Request Entity Too Large"},
		{422, true, "failure writing points to database: some points were not written"},
		{429, false, "too many requests"},
		{500, false, "timeout"},
		{503, false, "service unavailable"},
	}
}

func newInfluxProxy(target string) (*influxProxy, error) {
	p := &influxProxy{forward: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: target})}
	p.forward.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) } // break the connection
	p.forward.ErrorLog = log.New(io.Discard, "", 0)
	p.forward.Transport = &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	var err error
	_, p.addr, err = servers.Serve("127.0.0.1:0", p)
	return p, err
}

func (p *influxProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	refusal := p.refusal.Load()
	if refusal == nil || refusal.writes && !strings.HasSuffix(r.URL.Path, "/write") {
		p.forward.ServeHTTP(w, r)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Influxdb-Version", "1.8.10")
	w.Header().Set("X-Influxdb-Error", refusal.text)
	w.WriteHeader(refusal.status)
	_, _ = fmt.Fprintf(w, `{"error":%q}`, refusal.text)
}

// faults returns a fault for each refusal.
func (p *influxProxy) faults() (faults []fault) {
	for _, refusal := range refusals() {
		faults = append(faults, lastingFault(fmt.Sprintf("InfluxDB answers %d", refusal.status), func() { p.refusal.Store(&refusal) }, func() { p.refusal.Store(nil) }))
	}
	return faults
}
