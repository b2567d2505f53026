package influx_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/influx"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// second is an InfluxDB 2 as far as deleting asks of one.
type second struct {
	old     string // the sensors that have something to lose, as lines of CSV
	answer  string // to a query, instead of that, with this status
	query   int
	status  int // of the delete API
	asked   []string
	told    []map[string]string
	written bool
}

func (s *second) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch r.URL.Path {
	case "/ping":
		w.Header().Set("X-Influxdb-Version", "v2.7.1")
		w.WriteHeader(http.StatusNoContent)
	case "/api/v2/query":
		var q struct{ Query string }
		_ = json.Unmarshal(body, &q)
		s.asked = append(s.asked, q.Query)
		if s.answer != "" {
			w.WriteHeader(s.query)
			_, _ = io.WriteString(w, s.answer)
			return
		}
		_, _ = io.WriteString(w, "#datatype,string,long,string\r\n#group,false,false,false\r\n#default,_result,,\r\n,result,table,_value\r\n"+s.old+"\r\n")
	case "/api/v2/delete":
		told := map[string]string{"bucket": r.URL.Query().Get("bucket"), "org": r.URL.Query().Get("org")}
		_ = json.Unmarshal(body, &told)
		s.told = append(s.told, told)
		w.WriteHeader(s.status)
	case "/api/v2/write":
		s.written = true
		w.WriteHeader(http.StatusNoContent)
	}
}

func TestInfluxDB2ForgetsByItsDeleteAPI(t *testing.T) {
	fake := &second{old: ",,0,d1.b\r\n,,0,d1.c\r\n", status: http.StatusNoContent}
	server := httptest.NewServer(fake)
	defer server.Close()
	s := open(t, influx.Options{URL: server.URL, Bucket: "b", Org: "o"})
	before := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	old := []iot.Expired{{DeviceID: "d1", SensorID: "d1.a", Before: before}, {DeviceID: "d1", SensorID: "d1.b", Before: before}, {DeviceID: "d1", SensorID: "d1.c", Before: before}}
	if err := s.Forget(t.Context(), 7, old); err != nil {
		t.Fatal(err)
	}
	if len(fake.asked) != 1 || !strings.Contains(fake.asked[0], `r.account == "7" and (r.sensor_id == "d1.a" or r.sensor_id == "d1.b" or r.sensor_id == "d1.c")`) ||
		!strings.Contains(fake.asked[0], "stop: 2026-03-01T12:00:00Z") {
		t.Errorf("asked %q", fake.asked)
	}
	var predicates []string
	for _, told := range fake.told {
		predicates = append(predicates, told["predicate"])
		if told["bucket"] != "b" || told["org"] != "o" || told["stop"] != "2026-03-01T11:59:59.999999999Z" || !strings.HasPrefix(told["start"], "1678-01-01") {
			t.Errorf("told %v", told)
		}
	}
	if want := []string{`account="7" AND sensor_id="d1.b"`, `account="7" AND sensor_id="d1.c"`}; !slices.Equal(predicates, want) {
		t.Errorf("deleted %q, want %q", predicates, want)
	}

	fake.status = http.StatusServiceUnavailable
	if err := s.Forget(t.Context(), 7, old); relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("while it is down: %v", err)
	}
	fake.old, fake.told = "", nil
	if err := s.Forget(t.Context(), 7, old); err != nil || fake.told != nil {
		t.Errorf("with nothing to delete: %v, %v", fake.told, err)
	}
}

// A text over a number: the query tells of two numbers, one of which stands where
// no text will.
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
			fake := &second{query: tc.query, status: tc.status, answer: "#datatype,string,long,dateTime:RFC3339,string,string\r\n#group,false,false,false,true,true\r\n#default,_result,,,,\r\n" +
				",result,table,_time,_measurement,sensor_id\r\n,,0,2026-03-01T12:00:00.000000005Z,state,d1.a\r\n,,0,2026-03-01T12:30:00Z,state,d1.a\r\n\r\n"}
			server := httptest.NewServer(fake)
			defer server.Close()
			s := open(t, influx.Options{URL: server.URL, Bucket: "b", Org: "o"})
			if _, err := s.Write(t.Context(), iot.Batch{Points: []iot.Point{word, later}}); (err != nil) != tc.err {
				t.Fatal(err)
			}
			if len(fake.asked) != 1 || !strings.Contains(fake.asked[0], `r.account == "7" and r._field == "value" and (r.sensor_id == "d1.a" or r.sensor_id == "d1.b")`) ||
				!strings.Contains(fake.asked[0], "start: 2026-03-01T12:00:00.000000005Z, stop: 2026-03-01T13:00:00.000000006Z") {
				t.Errorf("asked %q", fake.asked)
			}
			if fake.written != !tc.err {
				t.Errorf("written: %t", fake.written)
			}
			if tc.status == 0 {
				return
			}
			const exact = "2026-03-01T12:00:00.000000005Z"
			if len(fake.told) != 1 || fake.told[0]["start"] != exact || fake.told[0]["stop"] != exact ||
				fake.told[0]["predicate"] != `_measurement="state" AND account="7" AND sensor_id="d1.a"` {
				t.Errorf("deleted %v", fake.told)
			}
		})
	}
}
