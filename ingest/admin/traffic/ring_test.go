package traffic

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/relaytest"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func twoSeries() []Series { return []Series{{Name: "uplink"}, {Name: "lag", Max: true}} }

// openRing opens a ring and returns it with its log.
func openRing(t *testing.T, path string, series []Series) (*Ring, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	r := Open(path, series, slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { _ = r.Close() })
	return r, &log
}

// figures returns a series of a chart, with -1 for steps without counts.
func figures(c Chart, series int) []int {
	var values []int
	for _, v := range c.Values[series] {
		if v == nil {
			values = append(values, -1)
			continue
		}
		values = append(values, int(*v)) //nolint:gosec // small counts
	}
	return values
}

func TestCountsAreAddedByMinuteAndStep(t *testing.T) {
	r, _ := openRing(t, filepath.Join(t.TempDir(), "ring"), twoSeries())
	for _, sample := range []struct {
		minute       int
		uplinks, lag uint64
	}{{0, 3, 5}, {0, 4, 2}, {2, 1, 9}, {5, 6, 1}} {
		r.Add(start.Add(time.Duration(sample.minute)*time.Minute+30*time.Second), []uint64{sample.uplinks, sample.lag})
	}
	now := start.Add(5*time.Minute + 59*time.Second)
	byMinute, byThree := r.Read(now, 6, 1), r.Read(now, 9, 3)
	for _, tc := range []struct {
		name      string
		got, want []int
	}{
		{"uplinks by minute", figures(byMinute, 0), []int{7, -1, 1, -1, -1, 6}},
		{"lag by minute", figures(byMinute, 1), []int{5, -1, 9, -1, -1, 1}},
		{"the sum of uplinks by three minutes", figures(byThree, 0), []int{-1, 8, 6}},
		{"the maximum of lag by three minutes", figures(byThree, 1), []int{-1, 9, 1}},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	relaytest.Equal(t, "the start by minutes", byMinute.From, start)
	relaytest.Equal(t, "the start by three minutes", byThree.From, start.Add(-3*time.Minute))
}

func TestCountsOfTheDayBeforeAreNotRead(t *testing.T) {
	r, _ := openRing(t, filepath.Join(t.TempDir(), "ring"), twoSeries())
	r.Add(start, []uint64{3, 0})
	r.Add(start.Add(24*time.Hour), []uint64{8, 0})
	if diff := cmp.Diff([]int{8}, figures(r.Read(start.Add(24*time.Hour), 1, 1), 0)); diff != "" {
		t.Errorf("counts differ (-want +got):\n%s", diff)
	}
	day := figures(r.Read(start.Add(24*time.Hour), Minutes, 1), 0)
	if len(day) != Minutes {
		t.Fatalf("values = %d, want %d", len(day), Minutes)
	}
	relaytest.Equal(t, "the first minute of the day", day[0], -1)
	relaytest.Equal(t, "the last minute of the day", day[Minutes-1], 8)
}

func TestARestartKeepsTheCountsAndTheSizeOfTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ring")
	r, log := openRing(t, path, twoSeries())
	for m := range 3 * Minutes {
		r.Add(start.Add(time.Duration(m)*time.Minute), []uint64{uint64(m), 1})
	}
	now := start.Add((3*Minutes - 1) * time.Minute)
	want := r.Read(now, Minutes, 1)
	reopened, reopenedLog := openRing(t, path, twoSeries()) // without Close, like after a kill
	if diff := cmp.Diff(want, reopened.Read(now, Minutes, 1)); diff != "" {
		t.Errorf("counts differ (-want +got):\n%s", diff)
	}
	reopened.Add(now, []uint64{10, 1})
	if got := figures(reopened.Read(now, 1, 1), 0); got[0] != 3*Minutes-1+10 {
		t.Errorf("count of the minute of the restart = %d, want %d", got[0], 3*Minutes-1+10)
	}
	info, err := os.Stat(path)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the size of the file", info.Size(), int64(headSize+Minutes*r.recordSize()))
	if log.Len()+reopenedLog.Len() > 0 {
		t.Errorf("log = %s%s, want none", log, reopenedLog)
	}
}

func TestADamagedFileIsReplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		damage  func([]byte) []byte
		series  []Series
		wantLog string
		kept    bool // the counts
	}{
		"truncated":                {func(b []byte) []byte { return b[:len(b)/2] }, twoSeries(), "begin anew", false},
		"too long":                 {func(b []byte) []byte { return append(b, 0) }, twoSeries(), "begin anew", false},
		"another file":             {func(b []byte) []byte { copy(b, "SQLite format 3"); return b }, twoSeries(), "begin anew", false},
		"other series":             {func(b []byte) []byte { return b }, []Series{{Name: "uplink"}, {Name: "delay", Max: true}}, "begin anew", false},
		"a torn record":            {func(b []byte) []byte { b[headSize+slotOf(start.Unix()/60+1)*28+9] ^= 1; return b }, twoSeries(), "minutes=1", true},
		"a record in another slot": {func(b []byte) []byte { copy(b[headSize:], b[headSize+slotOf(start.Unix()/60)*28:][:28]); return b }, twoSeries(), "minutes=1", true},
		"unchanged":                {func(b []byte) []byte { return b }, twoSeries(), "", true},
		"empty":                    {func([]byte) []byte { return nil }, twoSeries(), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ring")
			r, _ := openRing(t, path, twoSeries())
			r.Add(start, []uint64{5, 1})
			r.Add(start.Add(time.Minute), []uint64{7, 1})
			content, err := os.ReadFile(path)
			relaytest.NoError(t, err)
			relaytest.NoError(t, os.WriteFile(path, tc.damage(content), 0o600))
			reopened, log := openRing(t, path, tc.series)
			answertest.Contains(t, "the log", log.String(), tc.wantLog)
			relaytest.Equal(t, "the log is empty", log.Len() == 0, tc.wantLog == "")
			if got := figures(reopened.Read(start, 1, 1), 0)[0]; (got == 5) != tc.kept {
				t.Errorf("count of the minute = %d, want 5 kept: %t", got, tc.kept)
			}
			reopened.Add(start.Add(2*time.Minute), []uint64{9, 0})
			third, thirdLog := openRing(t, path, tc.series)
			if got := figures(third.Read(start.Add(2*time.Minute), 1, 1), 0)[0]; got != 9 {
				t.Errorf("count after another restart = %d, want 9; log: %q", got, thirdLog)
			}
		})
	}
}

func TestAFileThatCannotBeOpenedLeavesTheRingInMemory(t *testing.T) {
	r, log := openRing(t, filepath.Join(t.TempDir(), "none", "ring"), twoSeries())
	r.Add(start, []uint64{5, 1})
	relaytest.Equal(t, "the value", figures(r.Read(start, 1, 1), 0)[0], 5)
	answertest.Contains(t, "the log", log.String(), "in memory only")
}

func TestTheSamplerAddsTheGrowthOfCounters(t *testing.T) {
	r, _ := openRing(t, filepath.Join(t.TempDir(), "ring"), twoSeries())
	counts := []uint64{10, 4}
	s := NewSampler(r, func() []uint64 { return counts })
	s.Sample(start)
	counts = []uint64{15, 2}
	s.Sample(start.Add(10 * time.Second))
	s.Sample(start.Add(time.Minute))
	counts = []uint64{1, 2} // a decreased counter
	s.Sample(start.Add(time.Minute))
	counts = []uint64{3, 2}
	s.Sample(start.Add(time.Minute))
	c := r.Read(start.Add(time.Minute), 2, 1)
	if diff := cmp.Diff([][]int{{15, 2}, {4, 2}}, [][]int{figures(c, 0), figures(c, 1)}); diff != "" {
		t.Errorf("counts differ (-want +got):\n%s", diff)
	}
}

func FuzzOpen(f *testing.F) {
	path := filepath.Join(f.TempDir(), "ring")
	r := Open(path, twoSeries(), slog.New(slog.DiscardHandler))
	r.Add(start, []uint64{5, 1})
	content, _ := os.ReadFile(path)
	f.Add(content)
	f.Add([]byte("PENSTKT1"))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "ring")
		relaytest.NoError(t, os.WriteFile(path, content, 0o600))
		r := Open(path, twoSeries(), slog.New(slog.DiscardHandler))
		defer func() { _ = r.Close() }()
		oldCount := figures(r.Read(start, 1, 1), 0)[0]
		r.Add(start, []uint64{1, 1})
		if got := figures(r.Read(start, 1, 1), 0)[0]; got != max(oldCount, 0)+1 {
			t.Errorf("count = %d, want %d", got, max(oldCount, 0)+1)
		}
	})
}
