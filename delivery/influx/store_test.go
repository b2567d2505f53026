package influx_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/influx"
	"github.com/penstock/penstock/delivery/influx/influxtest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/iot/iottest"
	"github.com/penstock/penstock/relay/relaytest"
)

func openStore(t testing.TB, o influx.Options) *influx.Store {
	t.Helper()
	s := relaytest.Must(influx.New(o))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestReadingsInInfluxDB18PassTheSuite(t *testing.T) {
	t.Parallel()
	server := influxtest.Shared(t)
	for _, language := range []influx.Language{influx.InfluxQL, influx.Flux} {
		t.Run(string(language), func(t *testing.T) {
			t.Parallel()
			iottest.Run(t, func(t *testing.T) iot.ReadingStore {
				return openStore(t, influx.Options{URL: server.URL, Bucket: server.NewDatabase(t), Language: language})
			})
		})
	}
}

// useRetentionPolicy checks that each request has the retention policy and the password.
func useRetentionPolicy(t *testing.T, server *influxtest.Server) {
	s := openStore(t, influx.Options{URL: server.URL, Token: server.Token, Bucket: "policies/forever"})
	p1, p2 := reading(1, "good"), reading(2, "good")
	write := func(points ...iot.Point) {
		t.Helper()
		relaytest.Equal(t, "the refused points", relaytest.Must(s.Write(t.Context(), iot.Readings{Points: points}))(t), nil)
	}
	write(p1, p2)
	p2.Value, p2.Text, p2.IsText = 0, "off", true
	write(p2)
	q := iot.Query{Account: 1, DeviceID: "d1", Types: []string{"good"}}
	relaytest.Equal(t, "the readings", relaytest.Must(s.Readings(t.Context(), q))(t), []iot.Point{p2, p1})
	buckets := relaytest.Must(s.Aggregate(t.Context(), iot.AggregateQuery{Query: q, Statistic: iot.Average, Granularity: iot.Hour}))(t)
	relaytest.Equal(t, "the number of buckets", len(buckets), 1)
	relaytest.NoError(t, s.Forget(t.Context(), 1, []iot.ExpiredPoints{{DeviceID: "d1", SensorID: "d1.1", Before: p2.Time}}))
	relaytest.Equal(t, "the remaining readings", relaytest.Must(s.Readings(t.Context(), q))(t), []iot.Point{p2})
}

func reading(i int, kind string) iot.Point {
	return iot.Point{
		Account: 1, Type: kind, DeviceID: "d1", Identifier: "24e124136b502217", SensorID: "d1.1", Key: "temperature",
		Time: time.Date(2026, 3, 1, 0, 0, i, 0, time.UTC), Value: float64(i),
	}
}

func TestARealServerRefusesBadLinesOnly(t *testing.T) {
	server := influxtest.Shared(t)
	db := server.NewDatabase(t)
	s := openStore(t, influx.Options{URL: server.URL, Bucket: db})
	relaytest.Must(s.Write(t.Context(), iot.Readings{}))(t)
	relaytest.NoError(t, s.Ping(t.Context()))
	server.Query(t, db, `CREATE RETENTION POLICY "tenyears" ON "`+db+`" DURATION 520w REPLICATION 1 DEFAULT`)
	seedInteger(t, server, db)

	var b iot.Readings
	for i := range 1000 {
		p := reading(i, "good")
		switch {
		case i%10 == 3: // a conflict with the integer field
			p.Type = "taken"
		case i == 500: // beyond the retention policy
			p.Time = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
		case i == 501: // a tag beyond the maximum length
			p.Identifier = strings.Repeat("x", 70_000)
		}
		b.Points = append(b.Points, p)
	}
	refused := relaytest.Must(s.Write(t.Context(), b))(t)
	reasons := map[string]int{}
	for _, r := range refused {
		for _, reason := range []string{"field type conflict", "beyond retention", "unable to parse"} {
			if strings.Contains(r.Reason, reason) {
				reasons[reason]++
			}
		}
		if r.Point%10 != 3 && r.Point != 500 && r.Point != 501 {
			t.Errorf("line %d is refused: %s", r.Point, r.Reason)
		}
	}
	relaytest.Equal(t, "the number of refused lines", len(refused), 102)
	relaytest.Equal(t, "the reasons", reasons, map[string]int{"field type conflict": 100, "beyond retention": 1, "unable to parse": 1})
	relaytest.Equal(t, "the number of stored lines", server.Count(t, db, "good", "value"), 898)
}

// seedInteger makes "value" of the measurement "taken" an integer, in the shard of the readings
// of the test.
func seedInteger(t *testing.T, server *influxtest.Server, db string) {
	t.Helper()
	server.Write(t, db, fmt.Sprintf("taken value=1i %d", reading(0, "").Time.UnixNano()))
}

func TestAMissingDatabaseIsCreatedAgain(t *testing.T) {
	t.Parallel() // the test has a server of its own
	server := influxtest.Start(t, influxtest.Options{})
	s := openStore(t, influx.Options{URL: server.URL, Bucket: "db"})
	write := func() error {
		_, err := s.Write(t.Context(), iot.Readings{Points: []iot.Point{reading(1, "good")}})
		return err
	}
	relaytest.NoError(t, write())
	server.Stop()
	relaytest.Equal(t, "the kind of the error while the server is stopped", relay.KindOf(write()), relay.KindUnavailable)
	server.Restart(t)
	relaytest.NoError(t, write())
	server.Query(t, "", `DROP DATABASE "db"`)
	if err := write(); err == nil {
		t.Fatal("Write returned no error without the database")
	}
	if err := write(); err != nil {
		t.Fatalf("the database was not created again: %v", err)
	}
	relaytest.Equal(t, "the number of stored lines", server.Count(t, "db", "good", "value"), 1)
}

func TestARealServerChecksCredentials(t *testing.T) {
	t.Parallel() // the test has a server of its own
	server := influxtest.Start(t, influxtest.Options{Auth: true})
	server.Query(t, "", `CREATE DATABASE "db"`)
	server.Query(t, "", `CREATE USER "writer" WITH PASSWORD 'w'`)
	server.Query(t, "", `GRANT WRITE ON "db" TO "writer"`)
	cases := []struct {
		name, token, bucket string
		status              int // 0 if the write succeeds
	}{
		{"an administrator creates the database", "admin:secret", "new", 0},
		{"a user with write permission writes", "writer:w", "db", 0},
		{"a user without permission to create gets 404", "writer:w", "other", 404},
		{"a wrong password gets 401", "admin:wrong", "db", 401},
		{"no token gets 401", "", "db", 401},
	}
	t.Run("a retention policy is read and written", func(t *testing.T) { useRetentionPolicy(t, server) })
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := openStore(t, influx.Options{URL: server.URL, Token: tc.token, Bucket: tc.bucket})
			_, err := s.Write(t.Context(), iot.Readings{Points: []iot.Point{reading(1, "good")}})
			pingErr := s.Ping(t.Context())
			if tc.status == 0 {
				relaytest.NoError(t, err, pingErr)
				return
			}
			expectFailure(t, err, failure{Status: tc.status})
			expectFailure(t, pingErr, failure{Status: tc.status})
		})
	}
}
