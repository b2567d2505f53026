package client

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/relay/relaytest"
)

// terminal opens a pseudo-terminal and returns both ends.
func terminal(t *testing.T) (terminalEnd, programEnd *os.File) {
	t.Helper()
	terminalEnd, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals on this machine: %v", err)
	}
	t.Cleanup(func() { terminalEnd.Close() })
	relaytest.NoError(t, unix.IoctlSetPointerInt(int(terminalEnd.Fd()), unix.TIOCSPTLCK, 0))
	n := relaytest.Must(unix.IoctlGetInt(int(terminalEnd.Fd()), unix.TIOCGPTN))(t)
	programEnd = relaytest.Must(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { programEnd.Close() })
	return terminalEnd, programEnd
}

// TestProgressIsShownOnATerminalOnly runs a replay at a slow gateway.
func TestProgressIsShownOnATerminalOnly(t *testing.T) {
	release := make(chan struct{})
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-release
		_, _ = io.WriteString(w, `{"count": 7}`)
	}))
	t.Cleanup(gateway.Close)
	var replay replayEventsCommand
	replay.State, replay.Server, replay.AdminToken = "quarantined", gateway.URL, "the-admin-token-0"
	terminalEnd, programEnd := terminal(t)
	var stdout bytes.Buffer
	result := make(chan error, 1)
	go func() {
		result <- replay.Run(Environment{t.Context(), nil, strings.NewReader(""), &stdout, programEnd, "test"})
		_ = programEnd.Close()
	}()
	var output []byte
	for count := 0; count < 2; count = len(regexp.MustCompile(`the replay, \d+s`).FindAll(output, -1)) {
		b := make([]byte, 1000)
		n, err := terminalEnd.Read(b)
		relaytest.NoError(t, err)
		output = append(output, b[:n]...)
	}
	close(release)
	relaytest.NoError(t, <-result)
	relaytest.Equal(t, "the output", stdout.String(), "7 events\n")
	buf := make([]byte, 1000)
	n, _ := terminalEnd.Read(buf)
	if shown := string(append(output, buf[:n]...)); !strings.HasSuffix(shown, "\r\x1b[K") {
		t.Errorf("terminal output = %q, want it to end with the code that clears the line", shown)
	}
	var stderr bytes.Buffer
	relaytest.NoError(t, replay.Run(Environment{t.Context(), nil, strings.NewReader(""), &stdout, &stderr, "test"}))
	relaytest.Equal(t, "standard error without a terminal", stderr.String(), "")
}

func TestProgressLine(t *testing.T) {
	for _, tc := range []struct {
		done, total int64
		want        string
	}{
		{0, 0, "verify"}, {1500, 0, "verify, 2 kB"}, {0, 4000, "verify [....................] 0 kB of 4 kB"},
		{1000, 4000, "verify [#####...............] 1 kB of 4 kB"}, {5000, 4000, "verify [####################] 5 kB of 4 kB"},
	} {
		p := &Progress{label: "verify", unit: kilobytes}
		p.Add(tc.done)
		p.Expect(tc.total)
		if got := p.line(); !strings.HasPrefix(got, tc.want+", ") {
			t.Errorf("%d of %d: line = %q, want prefix %q", tc.done, tc.total, got, tc.want+", ")
		}
	}
}
