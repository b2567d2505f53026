package influx

import (
	"testing"
	"time"

	"github.com/penstock/penstock/relay/iot"
)

// FuzzReadSeries checks that a response to a query is an error or points, and never a
// panic.
func FuzzReadSeries(f *testing.F) {
	for _, s := range []string{
		`{"results":[{"statement_id":0}]}`,
		`{"results":[{"statement_id":0,"series":[{"name":"t","tags":{"sensor_id":"d.1"},"columns":["time","value","text"],"values":[[1740830400123456789,21.5,null],[1,null,"open"]]}]}]}`,
		`{"results":[{"error":"database not found: x"}]}`,
		`{"error":"unable to parse"}`,
		`{"results":[{"series":[{"values":[[1]],"partial":true}]}]}`,
		`{"results":[{"series":[{"values":[["x",{},[]]]}]}]}`,
		`{"results":[]}`, `null`, `[]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		results, err := readSeries(body)
		if err != nil && results != nil {
			t.Fatal("readSeries returned series and an error")
		}
		for _, series := range results {
			for _, statistic := range iot.Statistics() {
				buckets, err := appendBuckets(nil, series, statistic, false, func(t time.Time) time.Time { return t })
				if err != nil && buckets != nil {
					t.Fatal("appendBuckets returned buckets and an error")
				}
			}
		}
		points, _ := readPoints(1, body)
		for _, p := range points {
			if p.IsText && p.Value != 0 || !p.IsText && p.Text != "" {
				t.Fatalf("a point has the number %v and the text %q", p.Value, p.Text)
			}
		}
	})
}
