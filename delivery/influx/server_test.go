package influx_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/penstock/penstock/delivery/influx"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// fakeServer is an InfluxDB that records its requests.
type fakeServer struct {
	version   string // in the response to /ping
	buckets   int    // the status of /api/v2/buckets
	databases string // in the response to SHOW DATABASES
	create    int    // the status of CREATE DATABASE; 0 means 200
	answer    string // the response to a SELECT

	mu       sync.Mutex
	requests []string
}

func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	request := r.Method + " " + r.URL.Path
	q := ""
	if r.URL.Path == "/query" {
		q = r.FormValue("q")
		request, _, _ = strings.Cut(q, " FROM")
	}
	f.requests = append(f.requests, request)
	switch {
	case r.URL.Path == "/ping":
		w.Header().Set("X-Influxdb-Version", f.version)
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Path == "/api/v2/buckets":
		w.WriteHeader(f.buckets)
	case r.URL.Path == "/api/v2/write":
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Path == "/api/v2/query":
		_, _ = io.WriteString(w, "\r\n")
	case q == "SHOW DATABASES":
		_, _ = io.WriteString(w, `{"results":[{"series":[{"name":"databases","columns":["name"],"values":[["_internal"],["`+f.databases+`"]]}]}]}`)
	case strings.HasPrefix(q, "CREATE DATABASE") && f.create > 0:
		w.WriteHeader(f.create)
	case strings.HasPrefix(q, "SELECT") && f.answer != "":
		_, _ = io.WriteString(w, f.answer)
	default:
		_, _ = io.WriteString(w, `{"results":[{"statement_id":0}]}`)
	}
}

func TestTheVersionOfTheServerSelectsTheLanguage(t *testing.T) {
	cases := []struct {
		name   string
		server *fakeServer
		bucket string
		want   []string
	}{
		{"1.8 with the database uses InfluxQL", &fakeServer{version: "1.8.10", databases: "db"}, "db",
			[]string{"GET /ping", "SHOW DATABASES", "SELECT value, text"}},
		{"1.8 without the database creates it", &fakeServer{version: "1.8.10"}, "db",
			[]string{"GET /ping", "SHOW DATABASES", `CREATE DATABASE "db"`, "SELECT value, text"}},
		{"1.8 without the database and retention policy creates both", &fakeServer{version: "1.8.10"}, `d"b/r p`,
			[]string{"GET /ping", "SHOW DATABASES", `CREATE DATABASE "d\"b" WITH NAME "r p"`, "SELECT value, text"}},
		{"1.8 without the permission to create uses InfluxQL", &fakeServer{version: "1.8.10", create: 403}, "db",
			[]string{"GET /ping", "SHOW DATABASES", `CREATE DATABASE "db"`, "SELECT value, text"}},
		{"2.7 uses Flux", &fakeServer{version: "v2.7.1"}, "b", []string{"GET /ping", "POST /api/v2/query"}},
		{"2.0 uses Flux", &fakeServer{version: "2.0.9"}, "b", []string{"GET /ping", "POST /api/v2/query"}},
		{"an unknown version without buckets is 1.x", &fakeServer{version: "unknown", buckets: 404, databases: "db"}, "db",
			[]string{"GET /ping", "GET /api/v2/buckets", "SHOW DATABASES", "SELECT value, text"}},
		{"an unknown version with buckets is 2.x", &fakeServer{version: "Cloud", buckets: 200}, "b",
			[]string{"GET /ping", "GET /api/v2/buckets", "POST /api/v2/query"}},
		{"an unknown version that forbids listing buckets is 2.x", &fakeServer{buckets: 403}, "b",
			[]string{"GET /ping", "GET /api/v2/buckets", "POST /api/v2/query"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			server := httptest.NewServer(tc.server)
			defer server.Close()
			s := openStore(t, influx.Options{URL: server.URL, Bucket: tc.bucket})
			for range 2 { // the second query uses the cached version
				relaytest.Must(s.Readings(t.Context(), iot.Query{Account: 1, DeviceID: "d", Types: []string{"t"}}))(t)
			}
			relaytest.Equal(t, "the requests", tc.server.requests, append(tc.want, tc.want[len(tc.want)-1]))
		})
	}
}

func TestInvalidQueryResponsesAreUnavailable(t *testing.T) {
	cases := []struct{ name, answer, want string }{
		{"an unknown database", `{"results":[{"error":"database not found: db"}]}`, "database not found"},
		{"a failed statement", `{"results":[{"error":"shard is disabled"}]}`, "shard is disabled"},
		{"a refused query", `{"error":"no"}`, "500 no"},
		{"a truncated response", `{"results":[{"series":[{"name":"t","values":[],"partial":true}]}]}`, "max-row-limit"},
		{"a row of two columns", `{"results":[{"series":[{"name":"t","values":[[1,2]]}]}]}`, "a row of 2 columns"},
		{"a string instead of a time", `{"results":[{"series":[{"name":"t","values":[["x",1,null]]}]}]}`, `a row whose time is "x"`},
		{"a string instead of a number", `{"results":[{"series":[{"name":"t","values":[[1,"x",null]]}]}]}`, `a row with "x" for a number`},
		{"not JSON", `<html>`, "response to a query: invalid character"},
		{"incomplete JSON", `{"results":[`, "response to a query: "},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			server := httptest.NewServer(&fakeServer{version: "1.8.10", databases: "db", answer: tc.answer})
			defer server.Close()
			s := openStore(t, influx.Options{URL: server.URL, Bucket: "db"})
			points, err := s.Readings(t.Context(), iot.Query{Account: 1, DeviceID: "d", Types: []string{"t"}})
			relaytest.Equal(t, "the kind of the error", relay.KindOf(err), relay.KindUnavailable)
			relaytest.Equal(t, "the points", points, nil)
			if err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %q, want it to contain %q", err, tc.want)
			}
		})
	}
}

func TestPingReportsWhetherInfluxDB2AcceptsWrites(t *testing.T) {
	cases := []struct {
		name, code, message string
		status              int
		ok                  bool
	}{
		{"an empty write is refused only for its missing points", "invalid", "writing requires points", 400, true},
		{"an empty write is accepted", "", "", 204, true},
		{"unknown bucket", "not found", `bucket "b" not found`, 404, false},
		{"unknown token", "unauthorized", "unauthorized access", 401, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			server := newPeer(t, func(w http.ResponseWriter, _ *http.Request) { respond(w, tc.status, tc.code, tc.message) })
			s := openStore(t, influx.Options{URL: server.URL, Bucket: "b"})
			if err := s.Ping(t.Context()); (err == nil) != tc.ok {
				t.Errorf("Ping returned %v, want an error: %t", err, !tc.ok)
			}
		})
	}
}
