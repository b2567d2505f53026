package iotapi

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// row returns the JSON of an aggregate row; fields are its further members.
func row(key, fields string) string {
	return `{"sensor_id":"` + iot.SensorID("id1", key) + `","key":"` + key + `",` + fields + `}`
}

func TestEmptyTextReadingIsListed(t *testing.T) {
	a := newAPI(t)
	a.fill()
	_, err := a.service.Ingest(t.Context(), []iot.Arrival{{
		RecordID: "n1-u2", Account: 1, ReceivedAt: time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC),
		Frame: decoders.Frame{Kind: decoders.Uplink, Identifier: "AA:BB:CC:00:11:22", Object: map[string]any{"door": ""}},
	}})
	relaytest.NoError(t, err)
	if got := a.ask("GET /iot/devices/id1/readings/latest", "acme", ""); !strings.Contains(got, `"value":null,"text":"",`) {
		t.Errorf("got %s, want the empty text", got)
	}
}

func TestAggregatesAnswerAsSpecified(t *testing.T) {
	a := newAPI(t)
	a.fill()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	warm := iot.Bucket{Type: "temperature", SensorID: iot.SensorID("id1", "t"), Start: noon, Value: 64.1 / 3, Min: -40, Max: 100}
	door := iot.Bucket{Type: "state", SensorID: iot.SensorID("id1", "door"), Start: noon.Add(time.Hour), Value: 0.5, Min: 0, Max: 1}
	huge := warm
	huge.Value, huge.Min, huge.Max = math.MaxFloat64, math.MaxFloat64, math.MaxFloat64
	const head, tail = `"name":"Temperature","reading_date":"2026-03-01 12:00:00",`, `,"metric_units":"°C","imperial_units":"°F"`
	const state = `"name":"State","reading_date":"2026-03-01 13:00:00",`
	for _, tc := range []struct {
		name, query string
		buckets     []iot.Bucket
		want        string
	}{
		{"an average has twelve digits", "type=ave", []iot.Bucket{warm, door},
			row("t", head+`"value":21.3666666667`+tail) + "," + row("door", state+`"value":0.5,"metric_units":"","imperial_units":""`)},
		{"a minimum is not rounded", "type=min", []iot.Bucket{warm}, row("t", head+`"value":21.366666666666667`+tail)},
		{"minimum, average and maximum, with the average as the value", "type=min_ave_max&granularity=month", []iot.Bucket{warm},
			row("t", head+`"value":21.3666666667,"min":-40,"ave":21.3666666667,"max":100`+tail)},
		{"minimum, average and maximum in imperial units", "type=min_ave_max&units=imperial", []iot.Bucket{warm, door},
			row("t", head+`"value":70.46,"min":-40,"ave":70.46,"max":212`+tail) + "," +
				row("door", state+`"value":0.5,"min":0,"ave":0.5,"max":1,"metric_units":"","imperial_units":""`)},
		{"an overflow in imperial units is null", "type=max&units=imperial", []iot.Bucket{huge}, row("t", head+`"value":null`+tail)},
		{"no buckets", "type=first", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a.readings.buckets = tc.buckets
			if got, want := a.ask("GET /iot/devices/id1/readings/aggregate?"+tc.query, "acme", ""), `200 {"data":[`+tc.want+`]}`; got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}

func TestAggregateParametersAreValidated(t *testing.T) {
	a := newAPI(t)
	a.fill()
	for _, tc := range []struct{ name, query, want string }{
		{"no type", "", `"errors":{"type":["The type field is required."]}`},
		{"an unknown type", "type=median", `"errors":{"type":["The selected type is invalid."]}`},
		{"an unknown granularity", "type=min&granularity=year", `"errors":{"granularity":["The selected granularity is invalid."]}`},
		{"every parameter invalid", "type=x&granularity=y&units=z&startDate=1&endDate=2026-03-01T12:00:00Q",
			`"errors":{"endDate":["The endDate does not match the format YYYY-MM-DD HH:mm:ss."],"granularity":["The selected granularity is invalid."],` +
				`"startDate":["The startDate does not match the format YYYY-MM-DD HH:mm:ss."],"type":["The selected type is invalid."],"units":["The selected units are invalid."]}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, want := a.ask("GET /iot/devices/id1/readings/aggregate?"+tc.query, "acme", ""), "422 {"+tc.want+","+invalid+"}"; got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
	for _, dates := range []string{
		"startDate=2026-02-01%2000:00:00&endDate=2026-02-28%2023:59:59", "startDate=2026-02-01T01:00:00%2B01:00&endDate=20260228T235959,5Z",
		"startDate=20260131T2400&endDate=2026-02-28",
	} {
		a.ask("GET /iot/devices/id1/readings/aggregate?type=ave&"+dates, "acme", "")
		q := a.readings.aggregateQuery
		relaytest.Equal(t, dates+": from", q.From, time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
		relaytest.Equal(t, dates+": to", q.To, time.Date(2026, 3, 1, 0, 0, 0, -1, time.UTC))
	}
	q := a.readings.aggregateQuery
	relaytest.Equal(t, "the account", q.Account, 1)
	relaytest.Equal(t, "the device", q.DeviceID, "id1")
	relaytest.Equal(t, "the statistic", q.Statistic, iot.Average)
	relaytest.Equal(t, "the granularity", q.Granularity, iot.Hour)
	relaytest.Equal(t, "the types", q.Types, []string{"state", "temperature"})
	a.readings.buckets = make([]iot.Bucket, iot.MaxBuckets+1)
	if got := a.ask("GET /iot/devices/id1/readings/aggregate?type=ave", "acme", ""); !strings.HasPrefix(got, `422 {"errors":{"granularity":["The aggregate has more than 100000 rows: `) {
		t.Errorf("got %.200s, want the error for more than 100000 rows", got)
	}
}

func TestReadingsAreConvertedToImperialUnits(t *testing.T) {
	a := newAPI(t)
	a.fill()
	warm := `"name":"Temperature","value":70.7,"reading_date":"2026-03-01 12:00:00","metric_units":"°C","imperial_units":"°F"`
	for _, path := range []string{"readings", "readings/latest"} {
		got := a.ask("GET /iot/devices/id1/"+path+"?units=imperial", "acme", "")
		answertest.Contains(t, path, got, reading("t", warm), `"text":"open & shut"`)
		if got, want := a.ask("GET /iot/devices/id1/"+path+"?units=feet", "acme", ""), `422 {"errors":{"units":["The selected units are invalid."]},`+invalid+"}"; got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestExpiredLatestReadingsAreOmitted(t *testing.T) {
	a := newAPI(t)
	a.fill()
	a.ask("PATCH /iot/sensors/"+iot.SensorID("id1", "t"), "acme", `{"retention_days":2}`)
	for days, listed := range map[int]bool{2: true, 3: false} {
		a.now = time.Date(2026, 3, 1+days, 12, 0, 0, 0, time.UTC)
		got := a.ask("GET /iot/devices/id1/readings/latest", "acme", "")
		relaytest.Equal(t, fmt.Sprintf("the reading is listed after %d days", days), strings.Contains(got, `"key":"t"`), listed)
		answertest.Contains(t, fmt.Sprintf("the answer after %d days", days), got, `"key":"door"`)
	}
}
