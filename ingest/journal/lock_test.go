package journal

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// If childEnv is set, the test binary runs as a child process that appends to the log in the
// directory dirEnv.
const (
	childEnv = "JOURNAL_TEST_CHILD"
	dirEnv   = "JOURNAL_TEST_DIR"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		runChild(os.Getenv(dirEnv))
		return
	}
	os.Exit(m.Run())
}

// runChild appends from 16 goroutines until an error, and prints each acknowledged sequence with
// its payload.
func runChild(dir string) {
	l, err := Open(dir, Options{segmentBytes: 64 << 10})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := 0; ; i++ {
				p := fmt.Sprintf("%d-%d-%d-%s", os.Getpid(), w, i, strings.Repeat("p", i%300))
				seq, err := l.Append(context.Background(), []byte(p))
				if err != nil {
					fmt.Println("error", err)
					return
				}
				mu.Lock()
				_, err = fmt.Println(seq, p)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
}

func startChild(t *testing.T, dir string) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1", dirEnv+"="+dir)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	relaytest.NoError(t, err)
	relaytest.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, stdout
}

func TestAKilledProcessLosesNoAcknowledgedRecord(t *testing.T) {
	dir, acked := t.TempDir(), map[uint64]string{}
	for round := range 6 {
		cmd, stdout := startChild(t, dir)
		lines := bufio.NewScanner(stdout)
		for n := 0; lines.Scan(); n++ { // continues after the kill with the lines in the pipe
			if n == 100+round*137 {
				_ = cmd.Process.Kill()
			}
			seq, payload, ok := strings.Cut(lines.Text(), " ")
			number, err := strconv.ParseUint(seq, 10, 64)
			relaytest.NoError(t, err)
			if !ok {
				t.Fatalf("output of the child = %q, want a sequence and a payload", lines.Text())
			}
			if earlier, repeated := acked[number]; repeated {
				t.Fatalf("sequence %d was assigned to %q and %q", number, earlier, payload)
			}
			acked[number] = payload
		}
		_ = cmd.Wait()
	}
	l := mustOpen(t, dir, Options{})
	got := content(t, l)
	for seq, p := range acked {
		if got[seq] != p {
			t.Errorf("record %d = %q, want %q", seq, got[seq], p)
		}
	}
	wantGaps(t, l)
	t.Logf("%d acknowledged, %d stored", len(acked), len(got))
}

func TestASecondOpenerIsRefused(t *testing.T) {
	t.Run("in the same process", func(t *testing.T) {
		dir := t.TempDir()
		l := mustOpen(t, dir, Options{})
		_, err := Open(dir, Options{})
		wantErr(t, err, ErrLocked)
		for _, part := range []string{strconv.Itoa(os.Getpid()), dir} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("error = %q, want it to contain %s", err, part)
			}
		}
		mustClose(t, l)
		mustOpen(t, dir, Options{})
	})
	t.Run("while another process has the log open", func(t *testing.T) {
		dir := t.TempDir()
		cmd, stdout := startChild(t, dir)
		if !bufio.NewScanner(stdout).Scan() {
			t.Fatal("no output of the child")
		}
		_, err := Open(dir, Options{})
		wantErr(t, err, ErrLocked)
		if !strings.Contains(err.Error(), strconv.Itoa(cmd.Process.Pid)) {
			t.Errorf("error = %q, want it to contain process %d", err, cmd.Process.Pid)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		mustOpen(t, dir, Options{})
	})
	t.Run("in another process", func(t *testing.T) {
		dir := t.TempDir()
		mustOpen(t, dir, Options{})
		_, stdout := startChild(t, dir)
		output, err := io.ReadAll(stdout)
		relaytest.NoError(t, err)
		if want := ErrLocked.Error() + " by process " + strconv.Itoa(os.Getpid()); !strings.Contains(string(output), want) {
			t.Errorf("output of the child = %q, want %q", output, want)
		}
	})
}
