package influx_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/influx"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// influxDB2 implements the part of InfluxDB 2 that deleting uses.
type influxDB2 struct {
	mu      sync.Mutex
	old     string // the sensors with expired readings, as lines of CSV
	answer  string // the response to a query, instead of old
	query   int    // the status of answer
	status  int    // of the delete API
	queries []string
	deletes []map[string]string
	written bool
}

func (s *influxDB2) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.URL.Path {
	case "/ping":
		w.Header().Set("X-Influxdb-Version", "v2.7.1")
		w.WriteHeader(http.StatusNoContent)
	case "/api/v2/query":
		var q struct{ Query string }
		_ = json.Unmarshal(body, &q)
		s.queries = append(s.queries, q.Query)
		if s.answer != "" {
			w.WriteHeader(s.query)
			_, _ = io.WriteString(w, s.answer)
			return
		}
		_, _ = io.WriteString(w, "#datatype,string,long,string\r\n#group,false,false,false\r\n#default,_result,,\r\n,result,table,_value\r\n"+s.old+"\r\n")
	case "/api/v2/delete":
		params := map[string]string{"bucket": r.URL.Query().Get("bucket"), "org": r.URL.Query().Get("org")}
		_ = json.Unmarshal(body, &params)
		s.deletes = append(s.deletes, params)
		w.WriteHeader(s.status)
	case "/api/v2/write":
		s.written = true
		w.WriteHeader(http.StatusNoContent)
	}
}

func TestInfluxDB2ForgetsByItsDeleteAPI(t *testing.T) {
	fake := &influxDB2{old: ",,0,d1.b\r\n,,0,d1.c\r\n", status: http.StatusNoContent}
	server := httptest.NewServer(fake)
	defer server.Close()
	s := open(t, influx.Options{URL: server.URL, Bucket: "b", Org: "o"})
	before := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	old := []iot.Expired{{DeviceID: "d1", SensorID: "d1.a", Before: before}, {DeviceID: "d1", SensorID: "d1.b", Before: before}, {DeviceID: "d1", SensorID: "d1.c", Before: before}}
	relaytest.NoError(t, s.Forget(t.Context(), 7, old))
	checkQuery(t, fake, `r.account == "7" and (r.sensor_id == "d1.a" or r.sensor_id == "d1.b" or r.sensor_id == "d1.c")`, "stop: 2026-03-01T12:00:00Z")
	for _, params := range fake.deletes {
		if !strings.HasPrefix(params["start"], "1678-01-01") {
			t.Errorf("the deleted range starts at %s, want the earliest time", params["start"])
		}
		delete(params, "start")
	}
	const stop = "2026-03-01T11:59:59.999999999Z"
	relaytest.Equal(t, "the deletes", fake.deletes, []map[string]string{
		{"bucket": "b", "org": "o", "stop": stop, "predicate": `account="7" AND sensor_id="d1.b"`},
		{"bucket": "b", "org": "o", "stop": stop, "predicate": `account="7" AND sensor_id="d1.c"`},
	})

	fake.status = http.StatusServiceUnavailable
	relaytest.Equal(t, "the kind of the error while the server is down", relay.KindOf(s.Forget(t.Context(), 7, old)), relay.KindUnavailable)
	fake.old, fake.deletes = "", nil
	relaytest.NoError(t, s.Forget(t.Context(), 7, old))
	relaytest.Equal(t, "the deletes without expired readings", fake.deletes, nil)
}

// checkQuery checks that one query arrived and has all parts.
func checkQuery(t *testing.T, fake *influxDB2, parts ...string) {
	t.Helper()
	if len(fake.queries) != 1 {
		t.Fatalf("%d queries arrived, want 1", len(fake.queries))
	}
	for _, part := range parts {
		if !strings.Contains(fake.queries[0], part) {
			t.Errorf("the query %q lacks %q", fake.queries[0], part)
		}
	}
}

// A text is written over a number: the query returns two numbers, one of which has no
// text at its time.
func TestInfluxDB2DeletesTheNumberThatATextIsWrittenOver(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)
	word := iot.Point{Account: 7, Type: "state", DeviceID: "d1", SensorID: "d1.a", Key: "door", Time: at, Text: "open", IsText: true}
	later := word
	later.SensorID, later.Time = "d1.b", at.Add(time.Hour)
	for name, tc := range map[string]struct {
		query, status int
		err           bool
	}{
		"deleted":                   {http.StatusOK, http.StatusNoContent, false},
		"a server that is down":     {http.StatusOK, http.StatusServiceUnavailable, true},
		"a token that may not read": {http.StatusForbidden, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			fake := &influxDB2{query: tc.query, status: tc.status, answer: numbersOf("d1.a", "2026-03-01T12:00:00.000000005Z", "2026-03-01T12:30:00Z")}
			server := httptest.NewServer(fake)
			defer server.Close()
			s := open(t, influx.Options{URL: server.URL, Bucket: "b", Org: "o"})
			if _, err := s.Write(t.Context(), iot.Readings{Points: []iot.Point{word, later}}); (err != nil) != tc.err {
				t.Fatal(err)
			}
			checkQuery(t, fake, `r.account == "7" and (r.sensor_id == "d1.a" or r.sensor_id == "d1.b")`,
				"start: 2026-03-01T12:00:00.000000005Z, stop: 2026-03-01T13:00:00.000000006Z")
			relaytest.Equal(t, "the batch was written", fake.written, !tc.err)
			if tc.status == 0 {
				return
			}
			const exact = "2026-03-01T12:00:00.000000005Z"
			relaytest.Equal(t, "the deletes", fake.deletes, []map[string]string{
				{"bucket": "b", "org": "o", "start": exact, "stop": exact, "predicate": `_measurement="state" AND account="7" AND sensor_id="d1.a"`},
			})
		})
	}
}

// numbersOf is the response to a query for the numbers of a sensor.
func numbersOf(sensor string, times ...string) string {
	answer := "#datatype,string,long,dateTime:RFC3339,string,string\r\n#group,false,false,false,true,true\r\n#default,_result,,,,\r\n,result,table,_time,_measurement,sensor_id\r\n"
	for _, at := range times {
		answer += ",,0," + at + ",state," + sensor + "\r\n"
	}
	return answer + "\r\n"
}

// Another batch writes a number between two numbers after the store has asked for them.
func TestInfluxDB2KeepsANumberThatIsWrittenBetweenOverwrittenOnes(t *testing.T) {
	first, between, last := "2026-03-01T12:00:00Z", "2026-03-01T12:00:01Z", "2026-03-01T12:00:02Z"
	fake := &influxDB2{query: http.StatusOK, status: http.StatusNoContent, answer: numbersOf("d1.a", first, last)}
	server := httptest.NewServer(fake)
	defer server.Close()
	s := open(t, influx.Options{URL: server.URL, Bucket: "b", Org: "o"})
	var texts []iot.Point
	for _, at := range []string{first, last} {
		texts = append(texts, iot.Point{Account: 7, Type: "state", DeviceID: "d1", SensorID: "d1.a", Key: "door",
			Time: relaytest.Must(time.Parse(time.RFC3339, at))(t), Text: "open", IsText: true})
	}
	relaytest.Must(s.Write(t.Context(), iot.Readings{Points: texts}))(t)
	stored := []string{first, between, last}
	for _, d := range fake.deletes {
		stored = slices.DeleteFunc(stored, func(at string) bool { return d["start"] <= at && at <= d["stop"] })
	}
	relaytest.Equal(t, "the numbers that are left", stored, []string{between})
}
