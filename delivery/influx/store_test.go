package influx_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/influx"
	"github.com/penstock/penstock/delivery/influx/influxtest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/iot/iottest"
)

func open(t testing.TB, o influx.Options) *influx.Store {
	t.Helper()
	s, err := influx.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestReadingsInInfluxDB18PassTheSuite(t *testing.T) {
	cases := []struct {
		name    string
		server  influxtest.Options
		options influx.Options
		bucket  string
	}{
		{"read with InfluxQL", influxtest.Options{}, influx.Options{}, "readings%d"},
		{"read with InfluxQL, a retention policy named and a password asked for", influxtest.Options{Auth: true}, influx.Options{}, "readings%d/forever"},
		{"read with Flux", influxtest.Options{}, influx.Options{Language: influx.Flux}, "readings%d"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			server := influxtest.Start(t, tc.server)
			var n atomic.Int64
			iottest.Run(t, func(t *testing.T) iot.ReadingStore {
				o := tc.options
				o.URL, o.Token, o.Bucket = server.URL, server.Token, fmt.Sprintf(tc.bucket, n.Add(1))
				return open(t, o)
			})
		})
	}
}

func reading(i int, kind string) iot.Point {
	return iot.Point{
		Account: 1, Type: kind, DeviceID: "d1", Identifier: "24e124136b502217", SensorID: "d1.1", Key: "temperature",
		Time: time.Date(2026, 3, 1, 0, 0, i, 0, time.UTC), Value: float64(i),
	}
}

func TestARealServerRefusesOnlyWhatItMust(t *testing.T) {
	server := influxtest.Start(t, influxtest.Options{})
	s := open(t, influx.Options{URL: server.URL, Bucket: "db"})
	if _, err := s.Write(t.Context(), iot.Batch{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Query(t, "db", `CREATE RETENTION POLICY "tenyears" ON "db" DURATION 520w REPLICATION 1 DEFAULT`)
	seedInteger(t, server)

	var b iot.Batch
	for i := range 1000 {
		p := reading(i, "good")
		switch {
		case i%10 == 3: // the field is an integer already: a conflict
			p.Type = "taken"
		case i == 500: // beyond the retention policy
			p.Time = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
		case i == 501: // a tag longer than a key may be
			p.Identifier = strings.Repeat("x", 70_000)
		}
		b.Points = append(b.Points, p)
	}
	refused, err := s.Write(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]int{}
	for _, r := range refused {
		for _, known := range []string{"field type conflict", "beyond retention", "unable to parse"} {
			if strings.Contains(r.Reason, known) {
				reasons[known]++
			}
		}
		if r.Point%10 != 3 && r.Point != 500 && r.Point != 501 {
			t.Errorf("refused %+v", r)
		}
	}
	if len(refused) != 102 || reasons["field type conflict"] != 100 || reasons["beyond retention"] != 1 || reasons["unable to parse"] != 1 {
		t.Errorf("%d refused: %v", len(refused), reasons)
	}
	if n := server.Count(t, "db", "good", "value"); n != 898 {
		t.Errorf("%d stored, want 898", n)
	}
}

// seedInteger makes "value" of the measurement "taken" an integer, in the shard
// that the test's readings fall into.
func seedInteger(t *testing.T, server *influxtest.Server) {
	t.Helper()
	server.Write(t, "db", fmt.Sprintf("taken value=1i %d", reading(0, "").Time.UnixNano()))
}

func TestTheServerComesBackWithoutItsDatabase(t *testing.T) {
	server := influxtest.Start(t, influxtest.Options{})
	s := open(t, influx.Options{URL: server.URL, Bucket: "db"})
	write := func() error {
		_, err := s.Write(t.Context(), iot.Batch{Points: []iot.Point{reading(1, "good")}})
		return err
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	if err := write(); relay.KindOf(err) != relay.KindUnavailable {
		t.Fatalf("with the server stopped: %v", err)
	}
	server.Restart(t)
	if err := write(); err != nil {
		t.Fatal(err)
	}
	server.Query(t, "", `DROP DATABASE "db"`)
	if err := write(); err == nil {
		t.Fatal("no error without the database")
	}
	if err := write(); err != nil {
		t.Fatalf("the database was not made again: %v", err)
	}
	if n := server.Count(t, "db", "good", "value"); n != 1 {
		t.Errorf("%d stored, want 1", n)
	}
}

func TestCredentialsOfARealServer(t *testing.T) {
	server := influxtest.Start(t, influxtest.Options{Auth: true})
	server.Query(t, "", `CREATE DATABASE "db"`)
	server.Query(t, "", `CREATE USER "writer" WITH PASSWORD 'w'`)
	server.Query(t, "", `GRANT WRITE ON "db" TO "writer"`)
	cases := []struct {
		name, token, bucket string
		status              int // 0 = works
	}{
		{"an administrator makes the database", "admin:secret", "new", 0},
		{"a user who may only write writes", "writer:w", "db", 0},
		{"a user who may not create is told that the database is missing", "writer:w", "other", 404},
		{"a wrong password is told", "admin:wrong", "db", 401},
		{"no token is told", "", "db", 401},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := open(t, influx.Options{URL: server.URL, Token: tc.token, Bucket: tc.bucket})
			_, err := s.Write(t.Context(), iot.Batch{Points: []iot.Point{reading(1, "good")}})
			pinged := s.Ping(t.Context())
			if tc.status == 0 {
				if err != nil || pinged != nil {
					t.Fatalf("Write: %v; Ping: %v", err, pinged)
				}
				return
			}
			wantPaused(t, err, tc.status)
			wantPaused(t, pinged, tc.status)
		})
	}
}
