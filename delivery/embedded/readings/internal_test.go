package readings

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/iot/iottest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestTheDatabaseHasItsPragmas(t *testing.T) {
	s, err := Open(t.TempDir(), "")
	relaytest.NoError(t, err)
	defer func() { _ = s.Close() }()
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "10000", "user_version": strconv.Itoa(len(schema()))} {
		var got string
		if err := s.write.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %q, want %q; error %v", pragma, got, want, err)
		}
	}
}

func TestOlderTablesAreMigrated(t *testing.T) {
	s, err := Open(t.TempDir(), "")
	relaytest.NoError(t, err)
	defer func() { _ = s.Close() }()
	steps := append(schema(), "CREATE TABLE second (x) STRICT", "invalid SQL")
	if err := migrate(t.Context(), s.write, steps); err == nil {
		t.Fatal("migrate returned no error for invalid SQL")
	}
	if n := count(t, s, "SELECT count(*) FROM sqlite_schema WHERE name = 'second'"); n != 0 {
		t.Error("a failed migration left a table")
	}
	steps = append(schema(), "CREATE TABLE second (x INTEGER) STRICT")
	for range 2 { // the second migration changes nothing
		relaytest.NoError(t, migrate(t.Context(), s.write, steps))
	}
	if n := count(t, s, "PRAGMA user_version"); n != len(steps) {
		t.Errorf("version %d, want %d", n, len(steps))
	}
}

func count(t *testing.T, s *Store, q string) (n int) {
	t.Helper()
	relaytest.NoError(t, s.write.QueryRowContext(t.Context(), q).Scan(&n))
	return n
}

func TestQueriesUsePrimaryKeysAndSortOnlyEqualTimes(t *testing.T) {
	s, err := Open(t.TempDir(), "")
	relaytest.NoError(t, err)
	defer func() { _ = s.Close() }()
	text, args := query(iot.Query{Account: 1, DeviceID: "d", Types: []string{"temperature", "humidity"}, From: time.Unix(0, 0)})
	hours, hourArgs := aggregateQuery(iot.AggregateQuery{Query: iot.Query{Account: 1, DeviceID: "d"}, Statistic: iot.MinAveMax, Granularity: iot.Hour}, false)
	expired, expiredArgs := expiredQuery(1, []iot.ExpiredPoints{{DeviceID: "d", SensorID: "d.1", Before: time.Unix(0, 0)}, {DeviceID: "d", SensorID: "d.2", Before: time.Unix(1, 0)}}, readingKey{})
	stored := selectStored + "(?, ?)"
	cases := []struct {
		name, q  string
		args     []any
		want     []string
		unwanted string
	}{
		{"readings of a device", text, args, []string{"SEARCH reading USING PRIMARY KEY (device=? AND at>? AND at<?)", "LAST TERM OF ORDER BY"}, "SCAN reading"},
		{"an aggregate by the hour", hours, hourArgs, []string{"SEARCH reading USING PRIMARY KEY (device=? AND at>? AND at<?)"}, "SCAN reading"},
		{"latest readings of a device", selectLatest, []any{int64(newestSpan), 1, "d"}, []string{"SEARCH r USING PRIMARY KEY (device=? AND at>? AND at<?)", "SEARCH reading USING PRIMARY KEY (device=? AND at=? AND sensor=?)"}, "SCAN r"},
		{"last stored times of devices", stored, []any{1, "d", "e"}, []string{"SEARCH reading USING PRIMARY KEY (device=?)", "SEARCH uplink USING PRIMARY KEY (device=?)"}, "SCAN reading"},
		{"expired readings", expired, expiredArgs, []string{"SEARCH reading USING PRIMARY KEY (device=? AND at>? AND at<?)"}, "TEMP B-TREE"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			plan := explain(t, s, tc.q, tc.args)
			for _, want := range tc.want {
				if !slices.ContainsFunc(plan, func(step string) bool { return strings.Contains(step, want) }) {
					t.Errorf("plan = %q, want it to contain %q", plan, want)
				}
			}
			if strings.Contains(strings.Join(plan, "\n"), tc.unwanted) {
				t.Errorf("plan = %q, want it without %q", plan, tc.unwanted)
			}
		})
	}
}

func explain(t *testing.T, s *Store, q string, args []any) (plan []string) {
	t.Helper()
	rows, err := s.write.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+q, args...)
	relaytest.NoError(t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id, parent, unused int
		var step string
		relaytest.NoError(t, rows.Scan(&id, &parent, &unused, &step))
		plan = append(plan, step)
	}
	return plan
}

func TestTheCacheOfNamesIsClearedWhenItIsFull(t *testing.T) {
	var i ids
	i.clear()
	for n := range int64(maxIDs) {
		i.sensors[sensorName{n, ""}] = n
	}
	i.shrink()
	if len(i.sensors) != maxIDs {
		t.Fatal("the cache was cleared too early")
	}
	i.devices[deviceName{}] = 1
	i.shrink()
	if len(i.sensors)+len(i.devices) != 0 {
		t.Error("the full cache was not cleared")
	}
}

func BenchmarkWrite5000Points(b *testing.B) {
	s, err := Open(b.TempDir(), "")
	relaytest.NoError(b, err)
	defer func() { _ = s.Close() }()
	batch := iottest.Load(time.Time{})
	n := 0
	for b.Loop() {
		n++
		for i := range batch.Points {
			batch.Points[i].Time = time.Unix(1740830400+int64(n), 0)
		}
		if refused, err := s.Write(b.Context(), batch); err != nil || len(refused) > 0 {
			b.Fatalf("refused points = %v, error %v, want none", refused, err)
		}
	}
	b.ReportMetric(5000*float64(n)/b.Elapsed().Seconds(), "points/s")
}
