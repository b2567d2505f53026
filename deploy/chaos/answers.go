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

// answers passes HTTP requests on to InfluxDB, or answers them as an InfluxDB does
// that refuses them.
type answers struct {
	addr  string
	pass  *httputil.ReverseProxy
	fault atomic.Pointer[refusal]
}

// refusal is an answer of InfluxDB.
type refusal struct {
	status int
	writes bool // only writes are answered so
	text   string
}

// refusals are the answers that the gateway must survive. What it sets aside
// because of 400 and 422 the operator has processed again.
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

func newAnswers(target string) (*answers, error) {
	a := &answers{pass: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: target})}
	a.pass.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) } // as a connection that broke
	a.pass.ErrorLog = log.New(io.Discard, "", 0)
	a.pass.Transport = &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	var err error
	_, a.addr, err = servers.Serve("127.0.0.1:0", a)
	return a, err
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault := a.fault.Load()
	if fault == nil || fault.writes && !strings.HasSuffix(r.URL.Path, "/write") {
		a.pass.ServeHTTP(w, r)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Influxdb-Version", "1.8.10")
	w.Header().Set("X-Influxdb-Error", fault.text)
	w.WriteHeader(fault.status)
	_, _ = fmt.Fprintf(w, `{"error":%q}`, fault.text)
}

// faults are the answers as faults.
func (a *answers) faults() (faults []fault) {
	for _, refusal := range refusals() {
		faults = append(faults, lasting(fmt.Sprintf("InfluxDB answers %d", refusal.status), func() { a.fault.Store(&refusal) }, func() { a.fault.Store(nil) }))
	}
	return faults
}
