// Package influxtest gives tests a database of an InfluxDB 1.8 that all tests share. It
// starts separate servers for tests that stop the server or need credentials. The program is
// the influxd in PATH, on free ports of this host.
//
// If influxd is not installed, the test fails, or is skipped if PENSTOCK_TEST_SKIP_REAL is 1.
package influxtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/porttest"
	"github.com/penstock/penstock/relay/relaytest"
)

// Options changes how the server runs.
type Options struct {
	// Auth makes the server require credentials, and creates the administrator "admin".
	Auth bool
}

// Server is a running influxd.
type Server struct {
	URL   string
	Token string // "admin:secret" with Options.Auth, else empty

	config  string
	log     string
	process *relaytest.Process
}

// Shared returns the server that tests share, which they cannot stop. Its URL is in the
// environment variable PENSTOCK_TEST_INFLUX.
func Shared(t testing.TB) *Server {
	t.Helper()
	return &Server{URL: relaytest.Shared(t, "PENSTOCK_TEST_INFLUX", func(t testing.TB) string { return Start(t, Options{}).URL })}
}

// NewDatabase returns the name of a database that no other test uses. It does not exist
// yet, and is dropped when the test ends.
func (s *Server) NewDatabase(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test%x", rand.Uint64())
	t.Cleanup(func() { // the server may have been stopped
		if resp, err := http.PostForm(s.URL+"/query", url.Values{"q": {"DROP DATABASE " + name}}); err == nil {
			_ = resp.Body.Close()
		}
	})
	return name
}

// Start runs a server until the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	path, err := exec.LookPath("influxd")
	if err != nil {
		if os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
			t.Skip("skipped: no influxd on the path, and PENSTOCK_TEST_SKIP_REAL=1")
		}
		t.Fatal("no influxd on the path; make test installs it, PENSTOCK_TEST_SKIP_REAL=1 leaves it out")
	}
	dir := t.TempDir()
	s := &Server{config: filepath.Join(dir, "influxd.conf"), log: filepath.Join(dir, "influxd.log")}
	address := porttest.Address(t)
	s.URL = "http://" + address
	relaytest.NoError(t, os.WriteFile(s.config, fmt.Appendf(nil, config, dir, porttest.Address(t), address, o.Auth), 0o600))
	t.Cleanup(func() { s.Stop() })
	s.run(t, path)
	if o.Auth {
		s.Token = "admin:secret"
		s.query(t, url.Values{"q": {"CREATE USER admin WITH PASSWORD 'secret' WITH ALL PRIVILEGES"}})
	}
	return s
}

// config disables monitoring and logs of requests.
const config = `reporting-disabled = true
bind-address = "%[2]s"
[meta]
  dir = "%[1]s/meta"
[data]
  dir = "%[1]s/data"
  wal-dir = "%[1]s/wal"
  index-version = "tsi1"
  query-log-enabled = false
[monitor]
  store-enabled = false
[http]
  bind-address = "%[3]s"
  auth-enabled = %[4]t
  flux-enabled = true
  log-enabled = false
[logging]
  level = "error"
[continuous_queries]
  enabled = false
`

// Stop kills the server, like a power cut. Restart starts it again.
func (s *Server) Stop() {
	if s.config == "" {
		panic("a test stops the InfluxDB that all tests share")
	}
	s.process.Kill()
}

// Restart runs a stopped server again, on the same address and data.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.run(t, "influxd")
}

func (s *Server) run(t testing.TB, path string) {
	t.Helper()
	log := relaytest.Must(os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600))(t)
	defer func() { _ = log.Close() }()
	cmd := exec.Command(path, "run", "-config", s.config)
	cmd.Stdout, cmd.Stderr = log, log
	s.process = relaytest.StartProcess(t, cmd)
	s.wait(t)
}

func (s *Server) wait(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), relaytest.Patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !s.ready(ctx) {
		select {
		case <-tick.C:
		case <-s.process.Ended:
			t.Fatalf("influxd ended: %s", s.Log())
		case <-ctx.Done():
			t.Fatalf("influxd is not ready: %s", s.Log())
		}
	}
}

func (s *Server) ready(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/ping", http.NoBody)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusNoContent
}

// Log returns the output of the server.
func (s *Server) Log() string {
	b, _ := os.ReadFile(s.log)
	return string(b)
}

// Query runs InfluxQL and returns the JSON of the response. db may be empty. Times are
// nanoseconds.
func (s *Server) Query(t testing.TB, db, q string) string {
	t.Helper()
	return s.query(t, url.Values{"q": {q}, "db": {db}, "epoch": {"ns"}})
}

func (s *Server) query(t testing.TB, form url.Values) string {
	t.Helper()
	status, body := s.post(t, "/query", "application/x-www-form-urlencoded", form.Encode())
	if status != http.StatusOK || strings.Contains(body, `"error":`) {
		t.Fatalf("influxd: %s: %d %s", form.Get("q"), status, body)
	}
	return body
}

// post sends a request with the administrator's credentials, if there are any.
func (s *Server) post(t testing.TB, path, contentType, body string) (status int, response string) {
	t.Helper()
	req := relaytest.Must(http.NewRequestWithContext(context.Background(), http.MethodPost, s.URL+path, strings.NewReader(body)))(t)
	req.Header.Set("Content-Type", contentType)
	if user, password, ok := strings.Cut(s.Token, ":"); ok {
		req.SetBasicAuth(user, password)
	}
	resp, err := http.DefaultClient.Do(req)
	relaytest.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode, string(relaytest.Must(io.ReadAll(resp.Body))(t))
}

// Count returns the number of values of a field of a measurement.
func (s *Server) Count(t testing.TB, db, measurement, field string) int {
	t.Helper()
	var response struct {
		Results []struct {
			Series []struct{ Values [][2]int64 }
		}
	}
	body := s.Query(t, db, fmt.Sprintf("SELECT count(%q) FROM %q", field, measurement))
	if err := json.Unmarshal([]byte(body), &response); err != nil {
		t.Fatalf("influxd: %v in %s", err, body)
	}
	if len(response.Results[0].Series) == 0 {
		return 0
	}
	return int(response.Results[0].Series[0].Values[0][1])
}

// Write stores lines of line protocol, with nanoseconds.
func (s *Server) Write(t testing.TB, db, lines string) {
	t.Helper()
	status, body := s.post(t, "/write?"+url.Values{"db": {db}}.Encode(), "text/plain", lines)
	if status != http.StatusNoContent {
		t.Fatalf("influxd: write: %d %s", status, body)
	}
}
