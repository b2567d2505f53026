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

// open opens a ring and returns what it logs.
func open(t *testing.T, path string, series []Series) (*Ring, *bytes.Buffer) {
	t.Helper()
	var said bytes.Buffer
	r := Open(path, series, slog.New(slog.NewTextHandler(&said, nil)))
	t.Cleanup(func() { _ = r.Close() })
	return r, &said
}

// figures are a series of a chart, -1 where nothing was counted.
func figures(c Chart, series int) []int {
	var out []int
	for _, v := range c.Values[series] {
		if v == nil {
			out = append(out, -1)
			continue
		}
		out = append(out, int(*v)) //nolint:gosec // small figures of a test
	}
	return out
}

func TestCountsAreJoinedByMinuteAndStep(t *testing.T) {
	r, _ := open(t, filepath.Join(t.TempDir(), "ring"), twoSeries())
	for _, one := range []struct {
		minute       int
		uplinks, lag uint64
	}{{0, 3, 5}, {0, 4, 2}, {2, 1, 9}, {5, 6, 1}} {
		r.Add(start.Add(time.Duration(one.minute)*time.Minute+30*time.Second), []uint64{one.uplinks, one.lag})
	}
	now := start.Add(5*time.Minute + 59*time.Second)
	byMinute, byThree := r.Read(now, 6, 1), r.Read(now, 9, 3)
	for _, tc := range []struct {
		name      string
		got, want []int
	}{
		{"uplinks by minute", figures(byMinute, 0), []int{7, -1, 1, -1, -1, 6}},
		{"lag by minute", figures(byMinute, 1), []int{5, -1, 9, -1, -1, 1}},
		{"uplinks by three minutes are summed", figures(byThree, 0), []int{-1, 8, 6}},
		{"of the lag the largest stays", figures(byThree, 1), []int{-1, 9, 1}},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	relaytest.Equal(t, "the start by minutes", byMinute.From, start)
	relaytest.Equal(t, "the start by three minutes", byThree.From, start.Add(-3*time.Minute))
}

func TestAMinuteOfYesterdayIsNotShownToday(t *testing.T) {
	r, _ := open(t, filepath.Join(t.TempDir(), "ring"), twoSeries())
	r.Add(start, []uint64{3, 0})
	r.Add(start.Add(24*time.Hour), []uint64{8, 0})
	if diff := cmp.Diff([]int{8}, figures(r.Read(start.Add(24*time.Hour), 1, 1), 0)); diff != "" {
		t.Error(diff)
	}
	day := figures(r.Read(start.Add(24*time.Hour), Minutes, 1), 0)
	if len(day) != Minutes {
		t.Fatalf("%d values, want %d", len(day), Minutes)
	}
	relaytest.Equal(t, "the first minute of the day", day[0], -1)
	relaytest.Equal(t, "the last minute of the day", day[Minutes-1], 8)
}

func TestARestartKeepsTheDayAndTheFileItsSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ring")
	r, said := open(t, path, twoSeries())
	for m := range 3 * Minutes {
		r.Add(start.Add(time.Duration(m)*time.Minute), []uint64{uint64(m), 1})
	}
	now := start.Add((3*Minutes - 1) * time.Minute)
	want := r.Read(now, Minutes, 1)
	again, saidAgain := open(t, path, twoSeries()) // as after a kill: nothing was closed
	if diff := cmp.Diff(want, again.Read(now, Minutes, 1)); diff != "" {
		t.Error(diff)
	}
	again.Add(now, []uint64{10, 1})
	if got := figures(again.Read(now, 1, 1), 0); got[0] != 3*Minutes-1+10 {
		t.Errorf("the minute of the restart has %d", got[0])
	}
	info, err := os.Stat(path)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the size of the file", info.Size(), int64(headSize+Minutes*r.recordSize()))
	if said.Len()+saidAgain.Len() > 0 {
		t.Errorf("logged: %s%s", said, saidAgain)
	}
}

func TestADamagedFileIsReplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		damage func([]byte) []byte
		series []Series
		says   string
		keeps  bool
	}{
		"cut off":             {func(b []byte) []byte { return b[:len(b)/2] }, twoSeries(), "begin anew", false},
		"too long":            {func(b []byte) []byte { return append(b, 0) }, twoSeries(), "begin anew", false},
		"another file":        {func(b []byte) []byte { copy(b, "SQLite format 3"); return b }, twoSeries(), "begin anew", false},
		"of another version":  {func(b []byte) []byte { return b }, []Series{{Name: "uplink"}, {Name: "delay", Max: true}}, "begin anew", false},
		"a record torn":       {func(b []byte) []byte { b[headSize+slotOf(start.Unix()/60+1)*28+9] ^= 1; return b }, twoSeries(), "minutes=1", true},
		"a record elsewhere":  {func(b []byte) []byte { copy(b[headSize:], b[headSize+slotOf(start.Unix()/60)*28:][:28]); return b }, twoSeries(), "minutes=1", true},
		"as it was":           {func(b []byte) []byte { return b }, twoSeries(), "", true},
		"empty, as a new one": {func([]byte) []byte { return nil }, twoSeries(), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ring")
			r, _ := open(t, path, twoSeries())
			r.Add(start, []uint64{5, 1})
			r.Add(start.Add(time.Minute), []uint64{7, 1})
			content, err := os.ReadFile(path)
			relaytest.NoError(t, err)
			relaytest.NoError(t, os.WriteFile(path, tc.damage(content), 0o600))
			again, said := open(t, path, tc.series)
			answertest.Contains(t, "the log", said.String(), tc.says)
			relaytest.Equal(t, "the log is empty", said.Len() == 0, tc.says == "")
			if got := figures(again.Read(start, 1, 1), 0)[0]; (got == 5) != tc.keeps {
				t.Errorf("the minute has %d", got)
			}
			again.Add(start.Add(2*time.Minute), []uint64{9, 0})
			third, said := open(t, path, tc.series)
			if got := figures(third.Read(start.Add(2*time.Minute), 1, 1), 0)[0]; got != 9 {
				t.Errorf("after another restart the minute has %d; logged: %q", got, said)
			}
		})
	}
}

func TestAFileThatCannotBeOpenedLeavesTheRingInMemory(t *testing.T) {
	r, said := open(t, filepath.Join(t.TempDir(), "none", "ring"), twoSeries())
	r.Add(start, []uint64{5, 1})
	relaytest.Equal(t, "the value", figures(r.Read(start, 1, 1), 0)[0], 5)
	answertest.Contains(t, "the log", said.String(), "in memory only")
}

func TestTheSamplerAddsTheGrowthOfCounters(t *testing.T) {
	r, _ := open(t, filepath.Join(t.TempDir(), "ring"), twoSeries())
	counts := []uint64{10, 4}
	s := NewSampler(r, func() []uint64 { return counts })
	s.Sample(start)
	counts = []uint64{15, 2}
	s.Sample(start.Add(10 * time.Second))
	s.Sample(start.Add(time.Minute))
	counts = []uint64{1, 2} // a counter that went back counts from there
	s.Sample(start.Add(time.Minute))
	counts = []uint64{3, 2}
	s.Sample(start.Add(time.Minute))
	c := r.Read(start.Add(time.Minute), 2, 1)
	if diff := cmp.Diff([][]int{{15, 2}, {4, 2}}, [][]int{figures(c, 0), figures(c, 1)}); diff != "" {
		t.Error(diff)
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
		before := figures(r.Read(start, 1, 1), 0)[0]
		r.Add(start, []uint64{1, 1})
		if after := figures(r.Read(start, 1, 1), 0)[0]; after != max(before, 0)+1 {
			t.Errorf("the minute has %d after %d", after, before)
		}
	})
}
