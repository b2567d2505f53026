package archive

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sip"
)

var _ sip.Archives = (*Store)(nil)

func day(d, seconds int) time.Time {
	return time.Date(2026, 11, d, 0, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
}

// shelf has calls at even pauses, made up as they are read.
type shelf struct {
	count int
	pause time.Duration
	err   error
	gate  chan struct{} // closed: let readers go
	peak  uint64        // of live memory, looked at now and then
}

func (s *shelf) Put(context.Context, []sip.Record) error { return nil }

func (s *shelf) call(i int) cdr.Call {
	return cdr.Call{
		ID: fmt.Sprintf("id-%d", i), Key: fmt.Sprintf("%09d", i), Start: day(1, 0).Add(time.Duration(i) * s.pause),
		From: "447700900123", To: fmt.Sprint("=cmd(", i, ")"), Duration: int64(i % 100), Disposition: "ANSWERED",
	}
}

func (s *shelf) Read(ctx context.Context, _ account.ID, _, to time.Time, behind sip.Place, limit int) ([]cdr.Call, error) {
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	next := 0
	if behind.Key != "" {
		if _, err := fmt.Sscanf(behind.Key, "%d", &next); err != nil {
			return nil, err
		}
		next++
	}
	var out []cdr.Call
	for ; next < s.count && len(out) < limit; next++ {
		if c := s.call(next); c.Start.Before(to) {
			out = append(out, c)
		}
	}
	if next%100_000 == 0 && next > 0 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		s.peak = max(s.peak, m.HeapAlloc)
	}
	return out, s.err
}

func newStore(t *testing.T, dir string, s *shelf, o Options) *Store {
	t.Helper()
	a, err := Open(dir, s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func order(handle string, single bool) sip.Order {
	return sip.Order{Handle: handle, Account: 1, From: day(1, 0), To: day(31, 0), Single: single, AskedAt: day(20, 0)}
}

// contents reads an archive: names in order, and the rows of each file.
func contents(t *testing.T, a *Store, handle string) (names []string, rows map[string][][]string) {
	t.Helper()
	f, size, err := a.Open(handle)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(f)
	if err != nil || int64(len(b)) != size {
		t.Fatal(len(b), size, err)
	}
	z, err := zip.NewReader(bytes.NewReader(b), size)
	if err != nil {
		t.Fatal(err)
	}
	rows = make(map[string][][]string)
	for _, file := range z.File {
		r, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		if rows[file.Name], err = csv.NewReader(r).ReadAll(); err != nil {
			t.Fatal(err)
		}
		names = append(names, file.Name)
	}
	return names, rows
}

func TestAnArchiveHasAFileADayOrOne(t *testing.T) {
	for name, tc := range map[string]struct {
		single bool
		count  int
		want   string
	}{
		"one a day":            {false, 5, "cdr-20261101.csv:2 cdr-20261102.csv:2 cdr-20261103.csv:1"},
		"one for all":          {true, 5, "cdr-20261101-20261130.csv:5"},
		"no calls":             {false, 0, "cdr-20261101-20261130.csv:0"},
		"no calls in one file": {true, 0, "cdr-20261101-20261130.csv:0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{count: tc.count, pause: 12 * time.Hour}
			a := newStore(t, t.TempDir(), s, Options{Page: 2})
			if n, err := a.Make(t.Context(), order("h1", tc.single)); err != nil || n != int64(tc.count) {
				t.Fatal(n, err)
			}
			names, rows := contents(t, a, "h1")
			var got []string
			var all [][]string
			for _, n := range names {
				got = append(got, fmt.Sprint(n, ":", len(rows[n])-1))
				if !slices.Equal(rows[n][0], sip.Header()) {
					t.Errorf("%s begins with %q", n, rows[n][0])
				}
				all = append(all, rows[n][1:]...)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("%q", got)
			}
			for i, row := range all {
				if !slices.Equal(row, sip.Row(s.call(i))) {
					t.Errorf("%d: %q", i, row)
				}
			}
		})
	}
}

func TestWorkGoesOnWhenNobodyWaits(t *testing.T) {
	s := &shelf{count: 3, pause: time.Hour, gate: make(chan struct{})}
	a := newStore(t, t.TempDir(), s, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Make(ctx, order("h1", true)); relay.KindOf(err) != relay.KindUnavailable {
		t.Fatal(err)
	}
	if _, _, err := a.Open("h1"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("half an archive: %v", err)
	}
	close(s.gate)
	for range 2 { // the second makes it again, to the same
		if n, err := a.Make(t.Context(), order("h1", true)); err != nil || n != 3 {
			t.Fatal(n, err)
		}
	}
}

func TestWhatWasBrokenOffIsMadeAgain(t *testing.T) {
	dir := t.TempDir()
	s := &shelf{count: 3, pause: time.Hour, gate: make(chan struct{})}
	dead := newStore(t, dir, s, Options{AtOnce: 1})
	ended := make(chan error, 2)
	for _, h := range []string{"h1", "h2"} { // the second waits for the first
		go func() {
			_, err := dead.Make(context.Background(), order(h, true))
			ended <- err
		}()
	}
	for len(glob(t, dir, "*.part")) == 0 {
		runtime.Gosched()
	}
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-ended; relay.KindOf(err) != relay.KindUnavailable {
			t.Error(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "h3.part"), []byte("PK"), 0o600); err != nil {
		t.Fatal(err)
	}
	next := newStore(t, dir, &shelf{count: 3, pause: time.Hour}, Options{})
	if left := glob(t, dir, "*"); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	if n, err := next.Make(t.Context(), order("h1", true)); err != nil || n != 3 {
		t.Error(n, err)
	}
}

func glob(t *testing.T, dir, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestCallsThatCannotBeReadMakeNoArchive(t *testing.T) {
	broken := errors.New("broken")
	a := newStore(t, t.TempDir(), &shelf{count: 3, pause: time.Hour, err: broken}, Options{})
	if _, err := a.Make(t.Context(), order("h1", false)); !errors.Is(err, broken) {
		t.Error(err)
	}
	if left := glob(t, a.dir, "*"); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}

func TestArchivesGoWithTheirHandles(t *testing.T) {
	a := newStore(t, t.TempDir(), &shelf{}, Options{})
	if _, err := a.Make(t.Context(), order("h1", true)); err != nil {
		t.Fatal(err)
	}
	made := time.Now()
	for _, tc := range []struct {
		after time.Duration
		gone  int
	}{{time.Minute, 0}, {sip.Life + time.Minute, 1}, {sip.Life + time.Minute, 0}} {
		if n, err := a.Sweep(made.Add(tc.after)); err != nil || n != tc.gone {
			t.Errorf("after %s: %d, %v", tc.after, n, err)
		}
	}
	if _, _, err := a.Open("../archive/h1"); relay.KindOf(err) != relay.KindNotFound {
		t.Error(err)
	}
}

// TestMillionsOfCallsTakeNoMemory makes an archive of two million calls.
func TestMillionsOfCallsTakeNoMemory(t *testing.T) {
	count := 2_000_000
	if testing.Short() {
		count = 200_000
	}
	s := &shelf{count: count, pause: time.Second}
	a := newStore(t, t.TempDir(), s, Options{})
	begun := time.Now()
	if n, err := a.Make(t.Context(), order("h1", false)); err != nil || n != int64(count) {
		t.Fatal(n, err)
	}
	t.Logf("%d calls in %s, at most %d KiB live", count, time.Since(begun).Round(time.Millisecond), s.peak>>10)
	if s.peak > 32<<20 {
		t.Errorf("%d bytes live", s.peak)
	}
	unzip, err := exec.LookPath("unzip")
	if err != nil {
		t.Fatalf("unzip is needed: %v", err)
	}
	if out, err := exec.Command(unzip, "-tq", a.path("h1")+whole).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
