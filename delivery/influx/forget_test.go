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
	mu           sync.Mutex
	expired      string // the sensors with expired readings, as lines of CSV
	response     string // the response to a query, instead of expired
	queryStatus  int    // the status of response
	deleteStatus int    // of the delete API
	queries      []string
	deletes      []map[string]string
	written      bool
}

func (i *influxDB2) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	i.mu.Lock()
	defer i.mu.Unlock()
	switch r.URL.Path {
	case "/ping":
		w.Header().Set("X-Influxdb-Version", "v2.7.1")
		w.WriteHeader(http.StatusNoContent)
	case "/api/v2/query":
		var q struct{ Query string }
		_ = json.Unmarshal(body, &q)
		i.queries = append(i.queries, q.Query)
		if i.response != "" {
			w.WriteHeader(i.queryStatus)
			_, _ = io.WriteString(w, i.response)
			return
		}
		_, _ = io.WriteString(w, "#datatype,string,long,string\r\n#group,false,false,false\r\n#default,_result,,\r\n,result,table,_value\r\n"+i.expired+"\r\n")
	case "/api/v2/delete":
		params := map[string]string{"bucket": r.URL.Query().Get("bucket"), "org": r.URL.Query().Get("org")}
		_ = json.Unmarshal(body, &params)
		i.deletes = append(i.deletes, params)
		w.WriteHeader(i.deleteStatus)
	case "/api/v2/write":
		i.written = true
		w.WriteHeader(http.StatusNoContent)
	}
}

func TestForgetUsesTheDeleteAPIOfInfluxDB2(t *testing.T) {
	db := &influxDB2{expired: ",,0,d1.b\r\n,,0,d1.c\r\n", deleteStatus: http.StatusNoContent}
	server := httptest.NewServer(db)
	defer server.Close()
	s := openStore(t, influx.Options{URL: server.URL, Bucket: "b", Org: "o"})
	cutoff := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	expired := []iot.ExpiredPoints{{DeviceID: "d1", SensorID: "d1.a", Before: cutoff}, {DeviceID: "d1", SensorID: "d1.b", Before: cutoff}, {DeviceID: "d1", SensorID: "d1.c", Before: cutoff}}
	relaytest.NoError(t, s.Forget(t.Context(), 7, expired))
	expectQuery(t, db, `r.account == "7" and (r.sensor_id == "d1.a" or r.sensor_id == "d1.b" or r.sensor_id == "d1.c")`, "stop: 2026-03-01T12:00:00Z")
	for _, params := range db.deletes {
		if !strings.HasPrefix(params["start"], "1678-01-01") {
			t.Errorf("the deleted range starts at %s, want the earliest time", params["start"])
		}
		delete(params, "start")
	}
	const stop = "2026-03-01T11:59:59.999999999Z"
	relaytest.Equal(t, "the deletes", db.deletes, []map[string]string{
		{"bucket": "b", "org": "o", "stop": stop, "predicate": `account="7" AND sensor_id="d1.b"`},
		{"bucket": "b", "org": "o", "stop": stop, "predicate": `account="7" AND sensor_id="d1.c"`},
	})

	db.deleteStatus = http.StatusServiceUnavailable
	relaytest.Equal(t, "the kind of the error while the server is down", relay.KindOf(s.Forget(t.Context(), 7, expired)), relay.KindUnavailable)
	db.expired, db.deletes = "", nil
	relaytest.NoError(t, s.Forget(t.Context(), 7, expired))
	relaytest.Equal(t, "the deletes without expired readings", db.deletes, nil)
}

// expectQuery checks that one query arrived and contains all parts.
func expectQuery(t *testing.T, db *influxDB2, parts ...string) {
	t.Helper()
	if len(db.queries) != 1 {
		t.Fatalf("%d queries arrived, want 1", len(db.queries))
	}
	for _, part := range parts {
		if !strings.Contains(db.queries[0], part) {
			t.Errorf("query = %q, want it to contain %q", db.queries[0], part)
		}
	}
}

// The query returns two numbers. A text overwrites one of them; no text has the time of the other.
func TestANumberThatATextOverwritesIsDeletedFromInfluxDB2(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)
	text := iot.Point{Account: 7, Type: "state", DeviceID: "d1", SensorID: "d1.a", Key: "door", Time: now, Text: "open", IsText: true}
	otherSensor := text
	otherSensor.SensorID, otherSensor.Time = "d1.b", now.Add(time.Hour)
	for name, tc := range map[string]struct {
		query, status int
		err           bool
	}{
		"the number is deleted":     {http.StatusOK, http.StatusNoContent, false},
		"a server that is down":     {http.StatusOK, http.StatusServiceUnavailable, true},
		"a token that may not read": {http.StatusForbidden, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			db := &influxDB2{queryStatus: tc.query, deleteStatus: tc.status, response: numbersOf("d1.a", "2026-03-01T12:00:00.000000005Z", "2026-03-01T12:30:00Z")}
			server := httptest.NewServer(db)
			defer server.Close()
			s := openStore(t, influx.Options{URL: server.URL, Bucket: "b", Org: "o"})
			if _, err := s.Write(t.Context(), iot.Readings{Points: []iot.Point{text, otherSensor}}); (err != nil) != tc.err {
				t.Fatalf("Write: error = %v, want an error: %t", err, tc.err)
			}
			expectQuery(t, db, `r.account == "7" and (r.sensor_id == "d1.a" or r.sensor_id == "d1.b")`,
				"start: 2026-03-01T12:00:00.000000005Z, stop: 2026-03-01T13:00:00.000000006Z")
			relaytest.Equal(t, "the batch was written", db.written, !tc.err)
			if tc.status == 0 {
				return
			}
			const overwritten = "2026-03-01T12:00:00.000000005Z"
			relaytest.Equal(t, "the deletes", db.deletes, []map[string]string{
				{"bucket": "b", "org": "o", "start": overwritten, "stop": overwritten, "predicate": `_measurement="state" AND account="7" AND sensor_id="d1.a"`},
			})
		})
	}
}

// numbersOf returns the response to a query for the numbers of a sensor.
func numbersOf(sensor string, times ...string) string {
	csv := "#datatype,string,long,dateTime:RFC3339,string,string\r\n#group,false,false,false,true,true\r\n#default,_result,,,,\r\n,result,table,_time,_measurement,sensor_id\r\n"
	for _, t := range times {
		csv += ",,0," + t + ",state," + sensor + "\r\n"
	}
	return csv + "\r\n"
}

// Another batch writes a number between two overwritten numbers after the store has queried the
// numbers.
func TestANumberBetweenOverwrittenNumbersIsNotDeletedFromInfluxDB2(t *testing.T) {
	t1, t2, t3 := "2026-03-01T12:00:00Z", "2026-03-01T12:00:01Z", "2026-03-01T12:00:02Z"
	db := &influxDB2{queryStatus: http.StatusOK, deleteStatus: http.StatusNoContent, response: numbersOf("d1.a", t1, t3)}
	server := httptest.NewServer(db)
	defer server.Close()
	s := openStore(t, influx.Options{URL: server.URL, Bucket: "b", Org: "o"})
	var texts []iot.Point
	for _, start := range []string{t1, t3} {
		texts = append(texts, iot.Point{Account: 7, Type: "state", DeviceID: "d1", SensorID: "d1.a", Key: "door",
			Time: relaytest.Must(time.Parse(time.RFC3339, start))(t), Text: "open", IsText: true})
	}
	relaytest.Must(s.Write(t.Context(), iot.Readings{Points: texts}))(t)
	stored := []string{t1, t2, t3}
	for _, d := range db.deletes {
		stored = slices.DeleteFunc(stored, func(number string) bool { return d["start"] <= number && number <= d["stop"] })
	}
	relaytest.Equal(t, "the remaining numbers", stored, []string{t2})
}
