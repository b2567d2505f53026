package influx

import (
	"testing"
	"time"

	"github.com/penstock/penstock/relay/iot"
)

// FuzzAnswer checks that a response to a query is an error or points, and never a
// panic.
func FuzzAnswer(f *testing.F) {
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
		found, err := readSeries(body)
		if err != nil && found != nil {
			t.Fatal("an error and series")
		}
		for _, one := range found {
			for _, of := range iot.Statistics() {
				buckets, err := appendBuckets(nil, one, of, false, func(t time.Time) time.Time { return t })
				if err != nil && buckets != nil {
					t.Fatal("an error and buckets")
				}
			}
		}
		points, _ := readPoints(1, body)
		for _, p := range points {
			if p.IsText && p.Value != 0 || !p.IsText && p.Text != "" {
				t.Fatalf("the point has the number %v and the text %q", p.Value, p.Text)
			}
		}
	})
}
