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

// callSource is a source of count calls at even intervals. Read generates the calls.
type callSource struct {
	count   int
	pause   time.Duration // between the starts of two calls
	err     error
	release chan struct{} // unless nil, Read blocks until release is closed
	reading chan struct{} // notified when Read blocks
	peak    uint64        // largest measured size of the live heap, in bytes
}

func (c *callSource) call(i int) cdr.Call {
	return cdr.Call{
		ID: fmt.Sprintf("id-%d", i), Key: fmt.Sprintf("%09d", i), Start: day(1, 0).Add(time.Duration(i) * c.pause),
		From: "447700900123", To: fmt.Sprint("=cmd(", i, ")"), Duration: int64(i % 100), Disposition: "ANSWERED",
	}
}

func (c *callSource) Read(ctx context.Context, _ relay.AccountID, _, end time.Time, cursor sip.Cursor, limit int) ([]cdr.Call, error) {
	if c.release != nil {
		select {
		case c.reading <- struct{}{}:
		default:
		}
		select {
		case <-c.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	n := 0
	if cursor.Key != "" {
		if _, err := fmt.Sscanf(cursor.Key, "%d", &n); err != nil {
			return nil, err
		}
		n++
	}
	var calls []cdr.Call
	for ; n < c.count && len(calls) < limit; n++ {
		if call := c.call(n); call.Start.Before(end) {
			calls = append(calls, call)
		}
	}
	if n%100_000 == 0 && n > 0 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		c.peak = max(c.peak, m.HeapAlloc)
	}
	return calls, c.err
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

// expectMissing fails if an archive exists.
func expectMissing(t *testing.T, a *Store, handle string) {
	t.Helper()
	if _, _, err := a.Open(t.Context(), handle); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("open %s: error = %v, want kind not found", handle, err)
	}
}

func order(handle string, single bool) sip.Order {
	return sip.Order{Handle: handle, Account: 1, From: day(1, 0), To: day(31, 0), Single: single, RequestedAt: day(20, 0)}
}

// contents reads an archive. It returns the names of its files in order, and the rows of each
// file.
func contents(t *testing.T, a *Store, handle string) (names []string, rows map[string][][]string) {
	t.Helper()
	f, size, err := a.Open(t.Context(), handle)
	relaytest.NoError(t, err)
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(f)
	if err != nil || int64(len(b)) != size {
		t.Fatalf("read %d bytes, error %v, want %d bytes", len(b), err, size)
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

func TestAnArchiveHasAFileForEachDayOrASingleFile(t *testing.T) {
	for name, tc := range map[string]struct {
		single bool
		count  int
		want   string
	}{
		"a file for each day":         {false, 5, "cdr-20261101.csv:2 cdr-20261102.csv:2 cdr-20261103.csv:1"},
		"a single file":               {true, 5, "cdr-20261101-20261130.csv:5"},
		"no calls":                    {false, 0, "cdr-20261101-20261130.csv:0"},
		"a single file without calls": {true, 0, "cdr-20261101-20261130.csv:0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &callSource{count: tc.count, pause: 12 * time.Hour}
			a := newStore(t, newFiles(t, db.Options{}), s)
			a.pageSize = 2
			if n, err := a.Make(t.Context(), order("h1", tc.single)); err != nil || n != int64(tc.count) {
				t.Fatalf("Make returned %d calls, error %v, want %d", n, err, tc.count)
			}
			names, rows := contents(t, a, "h1")
			var got []string
			var allRows [][]string
			for _, n := range names {
				got = append(got, fmt.Sprint(n, ":", len(rows[n])-1))
				if !slices.Equal(rows[n][0], sip.Header()) {
					t.Errorf("%s: the header is %q, want %q", n, rows[n][0], sip.Header())
				}
				allRows = append(allRows, rows[n][1:]...)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("files and rows = %q, want %q", got, tc.want)
			}
			for i, row := range allRows {
				if !slices.Equal(row, sip.Row(s.call(i))) {
					t.Errorf("row %d = %q, want %q", i, row, sip.Row(s.call(i)))
				}
			}
		})
	}
}

func TestAnExportContinuesAfterItsCallerHasLeft(t *testing.T) {
	s := &callSource{count: 3, pause: time.Hour, release: make(chan struct{})}
	a := newStore(t, newFiles(t, db.Options{}), s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Make(ctx, order("h1", true)); relay.KindOf(err) != relay.KindUnavailable {
		t.Fatalf("error = %v, want kind unavailable", err)
	}
	expectMissing(t, a, "h1")
	close(s.release)
	for range 2 { // the second call makes the same archive again
		if n, err := a.Make(t.Context(), order("h1", true)); err != nil || n != 3 {
			t.Fatalf("Make returned %d calls, error %v, want 3", n, err)
		}
	}
}

func TestAnInterruptedExportIsMadeAgain(t *testing.T) {
	f := newFiles(t, db.Options{})
	s := &callSource{count: 3, pause: time.Hour, release: make(chan struct{}), reading: make(chan struct{}, 1)}
	stopped := newStore(t, f, s)
	stopped.slots = make(chan struct{}, 1)
	ended := make(chan error, 2)
	for _, h := range []string{"h1", "h2"} { // the second export waits for the slot
		go func() {
			_, err := stopped.Make(context.Background(), order(h, true))
			ended <- err
		}()
	}
	<-s.reading
	relaytest.NoError(t, stopped.Close())
	for range 2 {
		if err := <-ended; relay.KindOf(err) != relay.KindUnavailable {
			t.Errorf("error = %v, want kind unavailable", err)
		}
	}
	restarted := newStore(t, f, &callSource{count: 3, pause: time.Hour})
	expectMissing(t, restarted, "h1")
	expectMissing(t, restarted, "h2")
	if n, err := restarted.Make(t.Context(), order("h1", true)); err != nil || n != 3 {
		t.Errorf("Make returned %d calls, error %v, want 3", n, err)
	}
}

func TestCallsThatCannotBeReadMakeNoArchive(t *testing.T) {
	errBroken := errors.New("broken")
	a := newStore(t, newFiles(t, db.Options{}), &callSource{count: 3, pause: time.Hour, err: errBroken})
	if _, err := a.Make(t.Context(), order("h1", false)); !errors.Is(err, errBroken) {
		t.Errorf("error = %v, want %v", err, errBroken)
	}
	expectMissing(t, a, "h1")
}

func TestArchivesExpireWithTheirHandles(t *testing.T) {
	now := day(20, 0)
	f := newFiles(t, db.Options{Now: func() time.Time { return now }})
	a := newStore(t, f, &callSource{})
	if _, err := a.Make(t.Context(), order("h1", true)); err != nil {
		t.Fatal(err)
	}
	expectMissing(t, a, "../archives/h1")
	expectMissing(t, newStore(t, newFiles(t, db.Options{}), &callSource{}), "h1")
	now = now.Add(sip.HandleLifetime - time.Second)
	contents(t, newStore(t, f, &callSource{}), "h1") // on another gateway
	now = now.Add(time.Second)
	expectMissing(t, a, "h1")
}

func TestFileStoresAreSeparate(t *testing.T) {
	f := newFiles(t, db.Options{})
	for _, folder := range []string{"a", "b"} {
		s := NewFileStore(f, folder, time.Hour)
		t.Cleanup(func() { _ = s.Close() })
		n, err := s.Make(t.Context(), "same", func(_ context.Context, w io.Writer) (int64, error) {
			n, err := io.WriteString(w, folder)
			return int64(n), err
		})
		if n != 1 || err != nil {
			t.Fatalf("Make returned %d, error %v, want 1", n, err)
		}
	}
	b, size, err := NewFileStore(f, "a", time.Hour).Open(t.Context(), "same")
	if err != nil || size != 1 {
		t.Fatalf("Open returned the size %d, error %v, want 1", size, err)
	}
	if text, err := io.ReadAll(b); err != nil || string(text) != "a" {
		t.Errorf("content = %q, error %v, want a", text, err)
	}
}

// TestMemoryDoesNotGrowWithTheNumberOfCalls makes an archive of two million calls.
func TestMemoryDoesNotGrowWithTheNumberOfCalls(t *testing.T) {
	count := 2_000_000
	if testing.Short() {
		count = 200_000
	}
	s := &callSource{count: count, pause: time.Second}
	a := newStore(t, newFiles(t, db.Options{}), s)
	began := time.Now()
	if n, err := a.Make(t.Context(), order("h1", false)); err != nil || n != int64(count) {
		t.Fatalf("Make returned %d calls, error %v, want %d", n, err, count)
	}
	t.Logf("%d calls in %s, at most %d KiB live", count, time.Since(began).Round(time.Millisecond), s.peak>>10)
	if s.peak > 32<<20 {
		t.Errorf("%d bytes of live heap, want at most 32 MiB", s.peak)
	}
	unzip, err := exec.LookPath("unzip")
	if err != nil {
		t.Fatalf("unzip is needed: %v", err)
	}
	if output, err := exec.Command(unzip, "-tq", download(t, a, "h1")).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}

// download saves an archive and returns its path.
func download(t *testing.T, a *Store, handle string) string {
	t.Helper()
	src, size, err := a.Open(t.Context(), handle)
	relaytest.NoError(t, err)
	path := filepath.Join(t.TempDir(), handle+".zip")
	dst, err := os.Create(path)
	relaytest.NoError(t, err)
	n, err := io.Copy(dst, src)
	if err := errors.Join(err, dst.Close(), src.Close()); err != nil || n != size {
		t.Fatalf("copied %d bytes, error %v, want %d", n, err, size)
	}
	return path
}
