package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestFiles(t *testing.T) {
	tests := map[string]func(*testing.T, *Store, *relaytest.Clock){
		"a file is read as it was written":              testReadAsWritten,
		"a file appears only when it is complete":       testIncompleteContent,
		"writing a file again replaces its content":     testReplaced,
		"a file expires":                                testExpires,
		"the chunks of a stopped writer are swept":      testStoppedWriter,
		"a swept content cannot become a file":          testSweptContent,
		"a large file is swept in several transactions": testLargeSweep,
		"reading a file with a missing chunk fails":     testMissingChunk,
	}
	server := dbtest.Shared(t)
	for engine, url := range map[string]func() string{
		"on SQLite": func() string { return "" }, "on PostgreSQL": func() string { return server.NewDatabase(t) },
	} {
		for name, test := range tests {
			t.Run(engine+"/"+name, func(t *testing.T) {
				c := relaytest.NewClock(dbtest.TimeAt(0))
				test(t, NewStore(dbtest.Open(t, db.Options{URL: url(), Now: c.Now})), c)
			})
		}
	}
}

// randomContent returns size bytes that depend on seed.
func randomContent(size int, seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

// fill returns a function that writes content in pieces.
func fill(content []byte, piece int) func(io.Writer) error {
	return func(w io.Writer) error {
		for b := content; len(b) > 0; b = b[min(piece, len(b)):] {
			if _, err := w.Write(b[:min(piece, len(b))]); err != nil {
				return err
			}
		}
		return nil
	}
}

func write(t *testing.T, s *Store, name string, ttl time.Duration, content []byte) {
	t.Helper()
	if err := s.Write(t.Context(), name, ttl, fill(content, 100_000)); err != nil {
		t.Fatal(err)
	}
}

// wantFile fails the test unless a file has the content want; nil means that there is no file.
func wantFile(t *testing.T, s *Store, name string, want []byte) {
	t.Helper()
	f, size, err := s.Open(t.Context(), name)
	if want == nil && relay.KindOf(err) == relay.KindNotFound {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	wantContent(t, f, size, want)
}

func wantContent(t *testing.T, f io.ReadCloser, size int64, want []byte) {
	t.Helper()
	got, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil || !bytes.Equal(got, want) || size != int64(len(want)) {
		t.Errorf("read %d bytes of a file of %d, want %d; %v", len(got), size, len(want), err)
	}
}

// countRows counts the files, contents and chunks.
func countRows(t *testing.T, s *Store) (counts [3]int64) {
	t.Helper()
	for i, table := range []string{"file", "file_content", "file_chunk"} {
		var err error
		if counts[i], err = db.Value[int64](t.Context(), s.db, "test", "SELECT COUNT(*) FROM "+table); err != nil {
			t.Fatal(err)
		}
	}
	return counts
}

func sweep(t *testing.T, s *Store, now time.Time, want [3]int64) {
	t.Helper()
	if err := s.Sweep(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if got := countRows(t, s); got != want {
		t.Errorf("files, contents and chunks = %d, want %d", got, want)
	}
}

func testReadAsWritten(t *testing.T, s *Store, _ *relaytest.Clock) {
	for i, size := range []int{0, 1, chunkSize - 1, chunkSize, chunkSize + 1, 3*chunkSize + 7} {
		for _, piece := range []int{chunkSize * 4, 99_991} {
			content := randomContent(size, uint64(i))
			if err := s.Write(t.Context(), "f", time.Hour, fill(content, piece)); err != nil {
				t.Fatal(err)
			}
			wantFile(t, s, "f", content)
		}
	}
	wantFile(t, s, "g", nil)
}

func testIncompleteContent(t *testing.T, s *Store, c *relaytest.Clock) {
	content, errFill := randomContent(chunkSize+1, 1), errors.New("fill failed")
	for _, oldContent := range [][]byte{nil, content} {
		err := s.Write(t.Context(), "f", time.Hour, func(w io.Writer) error {
			err := fill(randomContent(2*chunkSize+1, 2), chunkSize)(w)
			wantFile(t, s, "f", oldContent)
			return errors.Join(err, errFill)
		})
		if !errors.Is(err, errFill) {
			t.Errorf("Write: %v, want %v", err, errFill)
		}
		wantFile(t, s, "f", oldContent)
		write(t, s, "f", time.Hour, content)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Write(ctx, "f", time.Hour, func(w io.Writer) error {
		cancel()
		return fill(randomContent(2*chunkSize+1, 2), chunkSize)(w)
	})
	if relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("Write with a cancelled context: %v, want kind unavailable", err)
	}
	wantFile(t, s, "f", content)
	// The incomplete contents are swept at once, the replaced content an hour later.
	sweep(t, s, c.Now(), [3]int64{1, 2, 4})
}

func testReplaced(t *testing.T, s *Store, c *relaytest.Clock) {
	oldContent, content := randomContent(3*chunkSize, 1), randomContent(2*chunkSize, 2)
	write(t, s, "f", 0, oldContent)
	f, size, err := s.Open(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	write(t, s, "f", 0, content)
	sweep(t, s, c.Advance(grace-time.Minute), [3]int64{1, 2, 5})
	wantContent(t, f, size, oldContent)
	wantFile(t, s, "f", content)
	sweep(t, s, c.Advance(time.Minute), [3]int64{1, 1, 2})
	sweep(t, s, c.Advance(1e6*time.Hour), [3]int64{1, 1, 2}) // files without a TTL are kept
	wantFile(t, s, "f", content)
}

func testExpires(t *testing.T, s *Store, c *relaytest.Clock) {
	content := randomContent(2*chunkSize, 1)
	write(t, s, "f", 2*time.Hour, content)
	c.Advance(2*time.Hour - time.Millisecond)
	wantFile(t, s, "f", content)
	f, size, err := s.Open(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	now := c.Advance(time.Millisecond)
	wantFile(t, s, "f", nil)
	sweep(t, s, now, [3]int64{0, 1, 2})
	wantContent(t, f, size, content) // an open file is read to its end
	sweep(t, s, c.Advance(grace), [3]int64{})
	write(t, s, "f", time.Hour, content)
	wantFile(t, s, "f", content)
}

// newWriterWithChunk returns a writer that has saved one chunk.
func newWriterWithChunk(t *testing.T, s *Store) *writer {
	t.Helper()
	w, err := s.begin(t.Context(), "f")
	if err == nil {
		err = fill(randomContent(chunkSize, 1), chunkSize)(w)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func testStoppedWriter(t *testing.T, s *Store, c *relaytest.Clock) {
	slowWriter := newWriterWithChunk(t, s)
	newWriterWithChunk(t, s)
	c.Advance(grace - time.Minute)
	if _, err := slowWriter.Write(randomContent(chunkSize, 2)); err != nil {
		t.Fatal(err)
	}
	sweep(t, s, c.Advance(time.Minute), [3]int64{0, 1, 2})
	if err := slowWriter.commit(time.Hour); err != nil {
		t.Fatal(err)
	}
	wantFile(t, s, "f", append(randomContent(chunkSize, 1), randomContent(chunkSize, 2)...))
}

func testSweptContent(t *testing.T, s *Store, c *relaytest.Clock) {
	w := newWriterWithChunk(t, s)
	// The clock of the gateway that sweeps is ahead.
	sweep(t, s, c.Now().Add(grace), [3]int64{})
	if _, err := w.Write(randomContent(chunkSize, 2)); relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("write to a swept content: %v, want kind unavailable", err)
	}
	if _, err := w.Write(nil); err == nil {
		t.Error("an empty write after the error returned no error")
	}
	if err := w.commit(time.Hour); relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("commit of a swept content: %v, want kind unavailable", err)
	}
	sweep(t, s, c.Now(), [3]int64{})
}

func testLargeSweep(t *testing.T, s *Store, c *relaytest.Clock) {
	size := (maxSwept + 2) * chunkSize
	write(t, s, "f", time.Hour, make([]byte, size))
	if err := s.db.Write(t.Context(), "test", func(ctx context.Context, tx *db.Tx) error {
		_, err := sweepContent(ctx, tx, c.Advance(time.Hour+grace))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got := countRows(t, s); got != [3]int64{1, 1, 2} {
		t.Errorf("files, contents and chunks = %d, want 1, 1 and 2", got)
	}
	sweep(t, s, c.Now(), [3]int64{})
}

func testMissingChunk(t *testing.T, s *Store, _ *relaytest.Clock) {
	write(t, s, "f", 0, randomContent(3*chunkSize, 1))
	if err := s.db.Run(t.Context(), "test", "DELETE FROM file_chunk WHERE idx = 1"); err != nil {
		t.Fatal(err)
	}
	f, _, err := s.Open(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(f); len(got) != chunkSize || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read %d bytes with error %v, want one chunk and an unexpected end", len(got), err)
	}
}

// TestTwoGateways writes, reads and sweeps the same files on two gateways concurrently. Each read
// returns a complete content.
func TestTwoGateways(t *testing.T) {
	gateways := dbtest.TwoGateways(t, NewStore)
	var wg sync.WaitGroup
	// Each content of a file has three chunks. Its bytes are its length less 2*chunkSize+1.
	for i := range 8 {
		wg.Go(func() {
			s, name := gateways[i%2], fmt.Sprint("f", i/4)
			write(t, s, name, time.Hour, bytes.Repeat([]byte{byte(i)}, 2*chunkSize+1+i))
			f, size, err := gateways[(i+1)%2].Open(t.Context(), name)
			if err != nil {
				t.Error(err)
				return
			}
			got, err := io.ReadAll(f)
			if err != nil || int64(len(got)) != size || !bytes.Equal(got, bytes.Repeat(got[:1], int(size))) || int(got[0]) != len(got)-2*chunkSize-1 {
				t.Errorf("read %d bytes of a file of %d; %v", len(got), size, err)
			}
			if err := s.Sweep(t.Context(), time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	sweep(t, gateways[0], time.Now().Add(2*grace-time.Minute), [3]int64{0, 2, 6})
	sweep(t, gateways[1], time.Now().Add(3*grace), [3]int64{})
}

func BenchmarkWrite(b *testing.B) { dbtest.BenchEach(b, NewStore, benchmarkWrite) }

// benchmarkWrite writes and reads files of 16 MiB.
func benchmarkWrite(b *testing.B, s *Store) {
	content := randomContent(16<<20, 1)
	b.SetBytes(int64(len(content)))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Write(b.Context(), "f", time.Hour, fill(content, 32<<10)); err != nil {
			b.Fatal(err)
		}
		f, _, err := s.Open(b.Context(), "f")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, f); err != nil {
			b.Fatal(err)
		}
	}
}
