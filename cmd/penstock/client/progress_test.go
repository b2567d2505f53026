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

// terminal returns both ends of a terminal.
func terminal(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals on this machine: %v", err)
	}
	t.Cleanup(func() { user.Close() })
	relaytest.NoError(t, unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0))
	n := relaytest.Must(unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN))(t)
	program = relaytest.Must(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { program.Close() })
	return user, program
}

// TestProgressIsShownOnATerminalOnly replays at a slow gateway.
func TestProgressIsShownOnATerminalOnly(t *testing.T) {
	slow := make(chan struct{})
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-slow
		_, _ = io.WriteString(w, `{"count": 7}`)
	}))
	t.Cleanup(gateway.Close)
	var replay replayEventsCommand
	replay.State, replay.Server, replay.AdminToken = "quarantined", gateway.URL, "the-admin-token-0"
	user, program := terminal(t)
	var out bytes.Buffer
	ended := make(chan error, 1)
	go func() {
		ended <- replay.Run(Environment{t.Context(), nil, strings.NewReader(""), &out, program, "test"})
		_ = program.Close()
	}()
	var seen []byte
	for drawn := 0; drawn < 2; drawn = len(regexp.MustCompile(`the replay, \d+s`).FindAll(seen, -1)) {
		b := make([]byte, 1000)
		n, err := user.Read(b)
		relaytest.NoError(t, err)
		seen = append(seen, b[:n]...)
	}
	close(slow)
	relaytest.NoError(t, <-ended)
	relaytest.Equal(t, "the output", out.String(), "7 events\n")
	rest := make([]byte, 1000)
	n, _ := user.Read(rest)
	if all := string(append(seen, rest[:n]...)); !strings.HasSuffix(all, "\r\x1b[K") {
		t.Errorf("the line stays: %q", all)
	}
	var piped bytes.Buffer
	relaytest.NoError(t, replay.Run(Environment{t.Context(), nil, strings.NewReader(""), &out, &piped, "test"}))
	relaytest.Equal(t, "what is shown without a terminal", piped.String(), "")
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
			t.Errorf("%d of %d: %q", tc.done, tc.total, got)
		}
	}
}
