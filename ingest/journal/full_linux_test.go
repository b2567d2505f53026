package journal

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// mountTmpfs mounts a tmpfs of a size, which needs root.
func mountTmpfs(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// appendUntilFull appends from eight goroutines until the log is full, and returns the
// acknowledged records.
func appendUntilFull(t *testing.T, l *Log, round string) map[uint64]string {
	t.Helper()
	return startWriters(t, l, 8, math.MaxInt, ErrFull, func(w, i int) string {
		return fmt.Sprintf("%s %d/%d %0700d", round, w, i, i)
	}).wait()
}

func TestAFullDiskLosesNoAcknowledgedRecord(t *testing.T) {
	dir := mountTmpfs(t, "3m")
	ballast := filepath.Join(dir, "ballast")
	relaytest.NoError(t, os.WriteFile(ballast, make([]byte, 1<<20), 0o600))
	l := mustOpen(t, filepath.Join(dir, "log"), Options{segmentBytes: 256 << 10})
	acked := appendUntilFull(t, l, "filled")
	wantContent(t, content(t, l), acked)
	relaytest.NoError(t, os.Remove(ballast))
	ackedLater := appendUntilFull(t, l, "filled again")
	for name, n := range map[string]int{"before": len(acked), "after": len(ackedLater)} {
		if n < 500 {
			t.Errorf("records stored %s space was freed = %d, want at least 500", name, n)
		}
	}
	maps.Copy(acked, ackedLater)
	wantContent(t, content(t, l), acked)
	mustClose(t, l)
	l = mustOpen(t, filepath.Join(dir, "log"), Options{segmentBytes: 256 << 10})
	wantContent(t, content(t, l), acked)
	wantGaps(t, l)
}

func TestProcessedRecordsAreDeletedOnAFullDisk(t *testing.T) {
	dir := mountTmpfs(t, "2m")
	l := mustOpen(t, dir, Options{segmentBytes: 256 << 10})
	c := mustConsumer(t, l, "c")
	acked := appendUntilFull(t, l, "filled")
	relaytest.NoError(t, c.Commit(l.Stats().Last))
	payload := make([]byte, 700)
	for range 2 * len(acked) {
		seq, err := l.Append(t.Context(), payload)
		relaytest.NoError(t, err)
		relaytest.NoError(t, c.Commit(seq))
	}
}
