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
		"a file is read as it was written":                 testReadAsWritten,
		"a file is there whole or not at all":              testWholeOrNot,
		"a file that is written again is replaced":         testReplaced,
		"a file expires":                                   testExpires,
		"a dead writer's chunks are swept":                 testDeadWriter,
		"a writer that was swept away makes no file":       testSweptWriter,
		"a file is swept in portions":                      testPortions,
		"a file whose chunks are missing ends in an error": testMissingChunks,
	}
	server := dbtest.Shared(t)
	for engine, url := range map[string]func() string{
		"on SQLite": func() string { return "" }, "on PostgreSQL": func() string { return server.NewDatabase(t) },
	} {
		for name, test := range tests {
			t.Run(engine+"/"+name, func(t *testing.T) {
				c := relaytest.NewClock(dbtest.At(0))
				test(t, NewStore(dbtest.Open(t, db.Options{URL: url(), Now: c.Now})), c)
			})
		}
	}
}

// made is content of a size, other for each seed.
func made(size int, seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

// fill writes content in pieces.
func fill(content []byte, piece int) func(io.Writer) error {
	return func(to io.Writer) error {
		for b := content; len(b) > 0; b = b[min(piece, len(b)):] {
			if _, err := to.Write(b[:min(piece, len(b))]); err != nil {
				return err
			}
		}
		return nil
	}
}

func write(t *testing.T, s *Store, name string, keep time.Duration, content []byte) {
	t.Helper()
	if err := s.Write(t.Context(), name, keep, fill(content, 100_000)); err != nil {
		t.Fatal(err)
	}
}

// holds fails unless a file has the content, nil for no file.
func holds(t *testing.T, s *Store, name string, want []byte) {
	t.Helper()
	f, size, err := s.Open(t.Context(), name)
	if want == nil && relay.KindOf(err) == relay.KindNotFound {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	rest(t, f, size, want)
}

func rest(t *testing.T, f io.ReadCloser, size int64, want []byte) {
	t.Helper()
	got, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil || !bytes.Equal(got, want) || size != int64(len(want)) {
		t.Errorf("%d bytes of %d, want %d, %v", len(got), size, len(want), err)
	}
}

// rows counts files, contents and chunks.
func rows(t *testing.T, s *Store) (n [3]int64) {
	t.Helper()
	for i, table := range []string{"file", "file_content", "file_chunk"} {
		var err error
		if n[i], err = db.Value[int64](t.Context(), s.db, "test", "SELECT COUNT(*) FROM "+table); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func sweep(t *testing.T, s *Store, now time.Time, want [3]int64) {
	t.Helper()
	if err := s.Sweep(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if got := rows(t, s); got != want {
		t.Errorf("%d files, contents and chunks are left, want %d", got, want)
	}
}

func testReadAsWritten(t *testing.T, s *Store, _ *relaytest.Clock) {
	for i, size := range []int{0, 1, chunkSize - 1, chunkSize, chunkSize + 1, 3*chunkSize + 7} {
		for _, piece := range []int{chunkSize * 4, 99_991} {
			content := made(size, uint64(i))
			if err := s.Write(t.Context(), "f", time.Hour, fill(content, piece)); err != nil {
				t.Fatal(err)
			}
			holds(t, s, "f", content)
		}
	}
	holds(t, s, "g", nil)
}

func testWholeOrNot(t *testing.T, s *Store, c *relaytest.Clock) {
	content, broken := made(chunkSize+1, 1), errors.New("broken")
	for _, former := range [][]byte{nil, content} {
		err := s.Write(t.Context(), "f", time.Hour, func(to io.Writer) error {
			err := fill(made(2*chunkSize+1, 2), chunkSize)(to)
			holds(t, s, "f", former)
			return errors.Join(err, broken)
		})
		if !errors.Is(err, broken) {
			t.Error(err)
		}
		holds(t, s, "f", former)
		write(t, s, "f", time.Hour, content)
	}
	ended, end := context.WithCancel(t.Context())
	err := s.Write(ended, "f", time.Hour, func(to io.Writer) error {
		end()
		return fill(made(2*chunkSize+1, 2), chunkSize)(to)
	})
	if relay.KindOf(err) != relay.KindUnavailable {
		t.Error(err)
	}
	holds(t, s, "f", content)
	// What was broken off goes at once, the content that was replaced an hour later.
	sweep(t, s, c.Now(), [3]int64{1, 2, 4})
}

func testReplaced(t *testing.T, s *Store, c *relaytest.Clock) {
	former, content := made(3*chunkSize, 1), made(2*chunkSize, 2)
	write(t, s, "f", 0, former)
	f, size, err := s.Open(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	write(t, s, "f", 0, content)
	sweep(t, s, c.Advance(grace-time.Minute), [3]int64{1, 2, 5})
	rest(t, f, size, former)
	holds(t, s, "f", content)
	sweep(t, s, c.Advance(time.Minute), [3]int64{1, 1, 2})
	sweep(t, s, c.Advance(1e6*time.Hour), [3]int64{1, 1, 2}) // kept for good
	holds(t, s, "f", content)
}

func testExpires(t *testing.T, s *Store, c *relaytest.Clock) {
	content := made(2*chunkSize, 1)
	write(t, s, "f", 2*time.Hour, content)
	c.Advance(2*time.Hour - time.Millisecond)
	holds(t, s, "f", content)
	f, size, err := s.Open(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	now := c.Advance(time.Millisecond)
	holds(t, s, "f", nil)
	sweep(t, s, now, [3]int64{0, 1, 2})
	rest(t, f, size, content) // one that is being read is read to its end
	sweep(t, s, c.Advance(grace), [3]int64{})
	write(t, s, "f", time.Hour, content)
	holds(t, s, "f", content)
}

// begun is a writer that has written a chunk.
func begun(t *testing.T, s *Store) *writer {
	t.Helper()
	w, err := s.begin(t.Context(), "f")
	if err == nil {
		err = fill(made(chunkSize, 1), chunkSize)(w)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func testDeadWriter(t *testing.T, s *Store, c *relaytest.Clock) {
	slow := begun(t, s)
	begun(t, s)
	c.Advance(grace - time.Minute)
	if _, err := slow.Write(made(chunkSize, 2)); err != nil {
		t.Fatal(err)
	}
	sweep(t, s, c.Advance(time.Minute), [3]int64{0, 1, 2})
	if err := slow.commit(time.Hour); err != nil {
		t.Fatal(err)
	}
	holds(t, s, "f", append(made(chunkSize, 1), made(chunkSize, 2)...))
}

func testSweptWriter(t *testing.T, s *Store, c *relaytest.Clock) {
	w := begun(t, s)
	// The clock of the gateway that sweeps is ahead.
	sweep(t, s, c.Now().Add(grace), [3]int64{})
	if _, err := w.Write(made(chunkSize, 2)); relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("a chunk: %v", err)
	}
	if _, err := w.Write(nil); err == nil {
		t.Error("it forgot that it failed")
	}
	if err := w.commit(time.Hour); relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("the end: %v", err)
	}
	sweep(t, s, c.Now(), [3]int64{})
}

func testPortions(t *testing.T, s *Store, c *relaytest.Clock) {
	size := (maxSwept + 2) * chunkSize
	write(t, s, "f", time.Hour, make([]byte, size))
	if err := s.db.Write(t.Context(), "test", func(ctx context.Context, tx *db.Tx) error {
		_, err := sweepContent(ctx, tx, c.Advance(time.Hour+grace))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got := rows(t, s); got != [3]int64{1, 1, 2} {
		t.Errorf("%d files, contents and chunks are left", got)
	}
	sweep(t, s, c.Now(), [3]int64{})
}

func testMissingChunks(t *testing.T, s *Store, _ *relaytest.Clock) {
	write(t, s, "f", 0, made(3*chunkSize, 1))
	if err := s.db.Run(t.Context(), "test", "DELETE FROM file_chunk WHERE idx = 1"); err != nil {
		t.Fatal(err)
	}
	f, _, err := s.Open(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(f); len(got) != chunkSize || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestTwoGateways lets two gateways make the same files and serve and sweep them at
// the same time: each is always one of those that were made, whole.
func TestTwoGateways(t *testing.T) {
	gateways := dbtest.Two(t, NewStore)
	var running sync.WaitGroup
	// Every version of a file has three chunks; its bytes tell its length.
	for i := range 8 {
		running.Go(func() {
			s, name := gateways[i%2], fmt.Sprint("f", i/4)
			write(t, s, name, time.Hour, bytes.Repeat([]byte{byte(i)}, 2*chunkSize+1+i))
			f, size, err := gateways[(i+1)%2].Open(t.Context(), name)
			if err != nil {
				t.Error(err)
				return
			}
			got, err := io.ReadAll(f)
			if err != nil || int64(len(got)) != size || !bytes.Equal(got, bytes.Repeat(got[:1], int(size))) || int(got[0]) != len(got)-2*chunkSize-1 {
				t.Errorf("%d bytes of %d, %v", len(got), size, err)
			}
			if err := s.Sweep(t.Context(), time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	sweep(t, gateways[0], time.Now().Add(2*grace-time.Minute), [3]int64{0, 2, 6})
	sweep(t, gateways[1], time.Now().Add(3*grace), [3]int64{})
}

func BenchmarkWrite(b *testing.B) { dbtest.BenchEach(b, NewStore, benchmarkWrite) }

// benchmarkWrite writes and reads files of 16 MiB.
func benchmarkWrite(b *testing.B, s *Store) {
	content := made(16<<20, 1)
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
