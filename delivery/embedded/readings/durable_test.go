package readings_test

import (
	"bufio"
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/embedded/readings"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

func reading(i int) iot.Point {
	return iot.Point{
		Account: 1, Type: "temperature", DeviceID: fmt.Sprintf("d%d", i%50), SensorID: fmt.Sprintf("d%d.1", i%50), Key: "t",
		Time: time.Unix(1740830400, int64(i)), Value: float64(i),
	}
}

func batch(start, n int) iot.Readings {
	var b iot.Readings
	for i := range n {
		b.Points = append(b.Points, reading(start+i))
	}
	return b
}

// writerDirVariable is the environment variable with the directory for TestWriter.
const writerDirVariable = "PENSTOCK_TEST_READINGS_DIR"

// TestWriter runs in a process that writeUntilKilled kills. It writes batches and prints the
// number of each stored batch.
func TestWriter(t *testing.T) {
	dir := os.Getenv(writerDirVariable)
	if dir == "" {
		t.Skip("runs only in the process that writeUntilKilled starts")
	}
	s, err := readings.Open(dir, "")
	relaytest.NoError(t, err)
	start, _ := strconv.Atoi(os.Getenv(writerDirVariable + "_START"))
	for i := start; ; i++ {
		if _, err := s.Write(t.Context(), batch(i*100, 100)); err != nil {
			t.Fatal(err)
		}
		fmt.Println("batch", i)
	}
}

func TestStoredBatchesSurviveAKill(t *testing.T) {
	dir := t.TempDir()
	lastAcknowledged := -1
	for round := range 5 {
		lastAcknowledged = writeUntilKilled(t, dir, lastAcknowledged+1, 20+round*7)
		s, err := readings.Open(dir, "")
		relaytest.NoError(t, err)
		stored := 0
		for d := range 50 {
			stored += len(allReadings(t, s, fmt.Sprintf("d%d", d)))
		}
		if stored < (lastAcknowledged+1)*100 || stored%100 != 0 {
			t.Fatalf("round %d: %d points stored, %d acknowledged", round, stored, (lastAcknowledged+1)*100)
		}
		relaytest.NoError(t, s.Close())
	}
}

// writeUntilKilled starts a process that writes, kills it after some batches and returns the
// number of the last batch that the process reported as stored.
func writeUntilKilled(t *testing.T, dir string, start, batches int) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWriter$", "-test.v")
	cmd.Env = append(os.Environ(), writerDirVariable+"="+dir, writerDirVariable+"_START="+strconv.Itoa(start))
	stdout, err := cmd.StdoutPipe()
	relaytest.NoError(t, err)
	relaytest.NoError(t, cmd.Start())
	lastAcknowledged, acknowledged := start-1, 0
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if n, ok := strings.CutPrefix(lines.Text(), "batch "); ok {
			lastAcknowledged, _ = strconv.Atoi(n)
			if acknowledged++; acknowledged == batches {
				_ = cmd.Process.Kill()
			}
		}
	}
	_ = cmd.Wait()
	if acknowledged < batches {
		t.Fatalf("the writer ended after %d batches, want %d", acknowledged, batches)
	}
	return lastAcknowledged
}

// allReadings returns a device's readings, newest first.
func allReadings(t *testing.T, s *readings.Store, device string) []iot.Point {
	t.Helper()
	var points []iot.Point
	q := iot.Query{Account: 1, DeviceID: device}
	for {
		page, err := s.Readings(t.Context(), q)
		relaytest.NoError(t, err)
		points = append(points, page...)
		if len(page) < readings.MaxReadings {
			return points
		}
		q.To = page[len(page)-1].Time.Add(-1)
	}
}

func TestReadersAndWritersRunConcurrently(t *testing.T) {
	s := open(t, t.TempDir())
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 10 {
				if _, err := s.Write(t.Context(), batch((w*10+i)*50, 50)); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 20 {
				if _, err := s.Readings(t.Context(), iot.Query{Account: 1, DeviceID: "d1"}); err != nil {
					t.Error(err)
				}
				if err := s.Ping(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(allReadings(t, s, "d1")); n != 40 {
		t.Errorf("device has %d readings, want 40", n)
	}
}

func TestAFailedBatchStoresNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	db := openSQLite(t, dir)
	if _, err := db.Exec("CREATE TRIGGER full BEFORE INSERT ON reading WHEN NEW.value = 63 BEGIN SELECT RAISE(ABORT, 'disk full'); END"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(t.Context(), batch(0, 100)); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Fatalf("error = %v, want disk full", err)
	}
	if n := len(allReadings(t, s, "d1")); n != 0 {
		t.Fatalf("%d readings of a failed batch, want none", n)
	}
	if _, err := db.Exec("DROP TRIGGER full"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(t.Context(), batch(0, 100)); err != nil {
		t.Fatal(err)
	}
	if n := len(allReadings(t, s, "d1")); n != 2 {
		t.Errorf("device has %d readings, want 2", n)
	}
}

func openSQLite(t *testing.T, dir string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, readings.File))
	relaytest.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestForeignFilesAreRefused(t *testing.T) {
	cases := []struct {
		name, sql, want string
	}{
		{"a file of a newer version", "PRAGMA application_id = 1349735012; PRAGMA user_version = 99", "schema version 99"},
		{"a database of another program", "CREATE TABLE t (x)", "belongs to another program"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := openSQLite(t, dir).Exec(tc.sql); err != nil {
				t.Fatal(err)
			}
			if _, err := readings.Open(dir, ""); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want it to contain %q", err, tc.want)
			}
		})
	}
	t.Run("a file that is not a database", func(t *testing.T) {
		dir := t.TempDir()
		relaytest.NoError(t, os.WriteFile(filepath.Join(dir, readings.File), bytes.Repeat([]byte("no database "), 1000), 0o600))
		if _, err := readings.Open(dir, ""); err == nil {
			t.Error("Open returned no error")
		}
	})
}

func TestADirectoryWithSpecialCharactersIsReopened(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b?c#d%20", "deep")
	s := open(t, dir)
	if _, err := s.Write(t.Context(), batch(0, 1)); err != nil {
		t.Fatal(err)
	}
	relaytest.NoError(t, s.Close())
	if n := len(allReadings(t, open(t, dir), "d0")); n != 1 {
		t.Errorf("device has %d readings, want 1", n)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		t.Fatalf("the directory has the entries %v, error %v, want files", entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode = %v, error %v, want 0600", e.Name(), info.Mode(), err)
		}
	}
}
