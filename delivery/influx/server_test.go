package influx_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/penstock/penstock/delivery/influx"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// fake is a server of some version that keeps what it was asked.
type fake struct {
	version   string // as /ping says it
	buckets   int    // the status of /api/v2/buckets
	databases string // what SHOW DATABASES lists
	create    int    // the status of CREATE DATABASE; 0 = 200
	answer    string // to a SELECT

	mu    sync.Mutex
	asked []string
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := r.Method + " " + r.URL.Path
	q := ""
	if r.URL.Path == "/query" {
		q = r.FormValue("q")
		asked, _, _ = strings.Cut(q, " FROM")
	}
	f.asked = append(f.asked, asked)
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

func TestTheServerIsAskedWhatItIs(t *testing.T) {
	cases := []struct {
		name   string
		server *fake
		bucket string
		want   []string
	}{
		{"1.8 that has the database is read with InfluxQL", &fake{version: "1.8.10", databases: "db"}, "db",
			[]string{"GET /ping", "SHOW DATABASES", "SELECT value, text"}},
		{"1.8 without the database is given it", &fake{version: "1.8.10"}, "db",
			[]string{"GET /ping", "SHOW DATABASES", `CREATE DATABASE "db"`, "SELECT value, text"}},
		{"1.8 is given the retention policy with it", &fake{version: "1.8.10"}, `d"b/r p`,
			[]string{"GET /ping", "SHOW DATABASES", `CREATE DATABASE "d\"b" WITH NAME "r p"`, "SELECT value, text"}},
		{"1.8 that does not let us create is tried all the same", &fake{version: "1.8.10", create: 403}, "db",
			[]string{"GET /ping", "SHOW DATABASES", `CREATE DATABASE "db"`, "SELECT value, text"}},
		{"2.7 is read with Flux", &fake{version: "v2.7.1"}, "b", []string{"GET /ping", "POST /api/v2/query"}},
		{"2.0 is read with Flux", &fake{version: "2.0.9"}, "b", []string{"GET /ping", "POST /api/v2/query"}},
		{"an unknown version without buckets is 1.x", &fake{version: "unknown", buckets: 404, databases: "db"}, "db",
			[]string{"GET /ping", "GET /api/v2/buckets", "SHOW DATABASES", "SELECT value, text"}},
		{"an unknown version with buckets is 2.x", &fake{version: "Cloud", buckets: 200}, "b",
			[]string{"GET /ping", "GET /api/v2/buckets", "POST /api/v2/query"}},
		{"an unknown version whose buckets are not shown is 2.x", &fake{buckets: 403}, "b",
			[]string{"GET /ping", "GET /api/v2/buckets", "POST /api/v2/query"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			server := httptest.NewServer(tc.server)
			defer server.Close()
			s := open(t, influx.Options{URL: server.URL, Bucket: tc.bucket})
			for range 2 { // the second time it is known
				if _, err := s.Readings(t.Context(), iot.Query{Account: 1, DeviceID: "d", Types: []string{"t"}}); err != nil {
					t.Fatal(err)
				}
			}
			if want := append(tc.want, tc.want[len(tc.want)-1]); !slices.Equal(tc.server.asked, want) {
				t.Errorf("\n got %q\nwant %q", tc.server.asked, want)
			}
		})
	}
}

func TestAnswersToQueriesThatAreErrors(t *testing.T) {
	cases := []struct{ name, answer, want string }{
		{"the database is gone", `{"results":[{"error":"database not found: db"}]}`, "database not found"},
		{"the statement failed", `{"results":[{"error":"shard is disabled"}]}`, "shard is disabled"},
		{"the query was refused", `{"error":"no"}`, "500 no"},
		{"the answer was cut by the server", `{"results":[{"series":[{"name":"t","values":[],"partial":true}]}]}`, "max-row-limit"},
		{"the answer has another form", `{"results":[{"series":[{"name":"t","values":[[1,2]]}]}]}`, "a row of 2 columns"},
		{"a column has another type", `{"results":[{"series":[{"name":"t","values":[["x",1,null]]}]}]}`, `a row whose time is "x"`},
		{"a number is none", `{"results":[{"series":[{"name":"t","values":[[1,"x",null]]}]}]}`, `a row with "x" for a number`},
		{"the answer is no JSON", `<html>`, "an answer that is no object"},
		{"the answer stops in the middle", `{"results":[`, "an answer: "},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			server := httptest.NewServer(&fake{version: "1.8.10", databases: "db", answer: tc.answer})
			defer server.Close()
			s := open(t, influx.Options{URL: server.URL, Bucket: "db"})
			points, err := s.Readings(t.Context(), iot.Query{Account: 1, DeviceID: "d", Types: []string{"t"}})
			if err == nil || !strings.Contains(err.Error(), tc.want) || points != nil || relay.KindOf(err) != relay.KindUnavailable {
				t.Errorf("%d points, error %v, want %q", len(points), err, tc.want)
			}
		})
	}
}

func TestPingOfInfluxDB2(t *testing.T) {
	cases := []struct {
		name, code, message string
		status              int
		works               bool
	}{
		{"it misses the points: it would have taken some", "invalid", "writing requires points", 400, true},
		{"it takes nothing", "", "", 204, true},
		{"the bucket is unknown", "not found", `bucket "b" not found`, 404, false},
		{"the token is unknown", "unauthorized", "unauthorized access", 401, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			server := peer(t, func(w http.ResponseWriter, _ *http.Request) { says(w, tc.status, tc.code, tc.message) })
			s := open(t, influx.Options{URL: server.URL, Bucket: "b"})
			if err := s.Ping(t.Context()); (err == nil) != tc.works {
				t.Error(err)
			}
		})
	}
}
