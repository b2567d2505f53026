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
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/file"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sip"
)

var _ sip.Archives = (*Store)(nil)

func day(d, seconds int) time.Time {
	return time.Date(2026, 11, d, 0, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
}

// callSource has calls at even pauses, made up as they are read.
type callSource struct {
	count int
	pause time.Duration
	err   error
	gate  chan struct{} // closed: let readers go
	read  chan struct{} // told of readers at the gate
	peak  uint64        // of live memory, looked at now and then
}

func (s *callSource) call(i int) cdr.Call {
	return cdr.Call{
		ID: fmt.Sprintf("id-%d", i), Key: fmt.Sprintf("%09d", i), Start: day(1, 0).Add(time.Duration(i) * s.pause),
		From: "447700900123", To: fmt.Sprint("=cmd(", i, ")"), Duration: int64(i % 100), Disposition: "ANSWERED",
	}
}

func (s *callSource) Read(ctx context.Context, _ relay.AccountID, _, to time.Time, behind sip.Cursor, limit int) ([]cdr.Call, error) {
	if s.gate != nil {
		select {
		case s.read <- struct{}{}:
		default:
		}
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

// newFiles returns a file store on a new database.
func newFiles(t *testing.T, o db.Options) *file.Store {
	t.Helper()
	return file.NewStore(dbtest.Open(t, o))
}

func newStore(t *testing.T, f *file.Store, s *callSource) *Store {
	t.Helper()
	a := New(f, s)
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// missing fails if an archive can be opened.
func missing(t *testing.T, a *Store, handle string) {
	t.Helper()
	if _, _, err := a.Open(t.Context(), handle); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("%s: %v", handle, err)
	}
}

func order(handle string, single bool) sip.Order {
	return sip.Order{Handle: handle, Account: 1, From: day(1, 0), To: day(31, 0), Single: single, AskedAt: day(20, 0)}
}

// contents reads an archive: names in order, and the rows of each file.
func contents(t *testing.T, a *Store, handle string) (names []string, rows map[string][][]string) {
	t.Helper()
	f, size, err := a.Open(t.Context(), handle)
	relaytest.NoError(t, err)
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(f)
	if err != nil || int64(len(b)) != size {
		t.Fatal(len(b), size, err)
	}
	z, err := zip.NewReader(bytes.NewReader(b), size)
	relaytest.NoError(t, err)
	rows = make(map[string][][]string)
	for _, file := range z.File {
		r, err := file.Open()
		relaytest.NoError(t, err)
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
			s := &callSource{count: tc.count, pause: 12 * time.Hour}
			a := newStore(t, newFiles(t, db.Options{}), s)
			a.pageSize = 2
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
	s := &callSource{count: 3, pause: time.Hour, gate: make(chan struct{})}
	a := newStore(t, newFiles(t, db.Options{}), s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Make(ctx, order("h1", true)); relay.KindOf(err) != relay.KindUnavailable {
		t.Fatal(err)
	}
	missing(t, a, "h1")
	close(s.gate)
	for range 2 { // the second makes it again, to the same
		if n, err := a.Make(t.Context(), order("h1", true)); err != nil || n != 3 {
			t.Fatal(n, err)
		}
	}
}

func TestWhatWasBrokenOffIsMadeAgain(t *testing.T) {
	f := newFiles(t, db.Options{})
	s := &callSource{count: 3, pause: time.Hour, gate: make(chan struct{}), read: make(chan struct{}, 1)}
	dead := newStore(t, f, s)
	dead.slots = make(chan struct{}, 1)
	ended := make(chan error, 2)
	for _, h := range []string{"h1", "h2"} { // the second waits for the first
		go func() {
			_, err := dead.Make(context.Background(), order(h, true))
			ended <- err
		}()
	}
	<-s.read
	relaytest.NoError(t, dead.Close())
	for range 2 {
		if err := <-ended; relay.KindOf(err) != relay.KindUnavailable {
			t.Error(err)
		}
	}
	next := newStore(t, f, &callSource{count: 3, pause: time.Hour})
	missing(t, next, "h1")
	missing(t, next, "h2")
	if n, err := next.Make(t.Context(), order("h1", true)); err != nil || n != 3 {
		t.Error(n, err)
	}
}

func TestCallsThatCannotBeReadMakeNoArchive(t *testing.T) {
	broken := errors.New("broken")
	a := newStore(t, newFiles(t, db.Options{}), &callSource{count: 3, pause: time.Hour, err: broken})
	if _, err := a.Make(t.Context(), order("h1", false)); !errors.Is(err, broken) {
		t.Error(err)
	}
	missing(t, a, "h1")
}

func TestArchivesGoWithTheirHandles(t *testing.T) {
	now := day(20, 0)
	f := newFiles(t, db.Options{Now: func() time.Time { return now }})
	a := newStore(t, f, &callSource{})
	if _, err := a.Make(t.Context(), order("h1", true)); err != nil {
		t.Fatal(err)
	}
	missing(t, a, "../archives/h1")
	missing(t, newStore(t, newFiles(t, db.Options{}), &callSource{}), "h1")
	now = now.Add(sip.Life - time.Second)
	contents(t, newStore(t, f, &callSource{}), "h1") // on another gateway
	now = now.Add(time.Second)
	missing(t, a, "h1")
}

func TestFileStoresAreSeparate(t *testing.T) {
	f := newFiles(t, db.Options{})
	for _, folder := range []string{"a", "b"} {
		s := NewFileStore(f, folder, time.Hour)
		t.Cleanup(func() { _ = s.Close() })
		n, err := s.Make(t.Context(), "same", func(_ context.Context, to io.Writer) (int64, error) {
			n, err := io.WriteString(to, folder)
			return int64(n), err
		})
		if n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	b, size, err := NewFileStore(f, "a", time.Hour).Open(t.Context(), "same")
	if err != nil || size != 1 {
		t.Fatal(size, err)
	}
	if text, err := io.ReadAll(b); err != nil || string(text) != "a" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestMillionsOfCallsTakeNoMemory makes an archive of two million calls.
func TestMillionsOfCallsTakeNoMemory(t *testing.T) {
	count := 2_000_000
	if testing.Short() {
		count = 200_000
	}
	s := &callSource{count: count, pause: time.Second}
	a := newStore(t, newFiles(t, db.Options{}), s)
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
	if out, err := exec.Command(unzip, "-tq", download(t, a, "h1")).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// download saves an archive and returns its path.
func download(t *testing.T, a *Store, handle string) string {
	t.Helper()
	from, size, err := a.Open(t.Context(), handle)
	relaytest.NoError(t, err)
	path := filepath.Join(t.TempDir(), handle+".zip")
	to, err := os.Create(path)
	relaytest.NoError(t, err)
	n, err := io.Copy(to, from)
	if err := errors.Join(err, to.Close(), from.Close()); err != nil || n != size {
		t.Fatal(n, size, err)
	}
	return path
}
