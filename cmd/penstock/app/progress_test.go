package app

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
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals on this machine: %v", err)
	}
	t.Cleanup(func() { person.Close() })
	relaytest.NoError(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	relaytest.NoError(t, err)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	relaytest.NoError(t, err)
	t.Cleanup(func() { program.Close() })
	return person, program
}

// TestProgressIsShownToAPersonOnly replays at a gateway that takes its time.
func TestProgressIsShownToAPersonOnly(t *testing.T) {
	slow := make(chan struct{})
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-slow
		_, _ = io.WriteString(w, `{"count": 7}`)
	}))
	t.Cleanup(gateway.Close)
	args := []string{"replay", "events", "--state", "quarantined", "--server", gateway.URL, "--admin-token", "the-admin-token-0"}
	person, program := terminal(t)
	var out bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- Run(args, Environment{t.Context(), nil, strings.NewReader(""), &out, program, "test"})
		_ = program.Close()
	}()
	var seen []byte
	for drawn := 0; drawn < 2; drawn = len(regexp.MustCompile(`the replay, \d+s`).FindAll(seen, -1)) {
		b := make([]byte, 1000)
		n, err := person.Read(b)
		relaytest.NoError(t, err)
		seen = append(seen, b[:n]...)
	}
	close(slow)
	if code := <-ended; code != 0 || out.String() != "7 events\n" {
		t.Errorf("exit %d: %q", code, out.String())
	}
	rest := make([]byte, 1000)
	n, _ := person.Read(rest)
	if all := string(append(seen, rest[:n]...)); !strings.HasSuffix(all, "\r\x1b[K") {
		t.Errorf("the line stays: %q", all)
	}
	var piped bytes.Buffer
	if code := Run(args, Environment{t.Context(), nil, strings.NewReader(""), &out, &piped, "test"}); code != 0 || piped.Len() > 0 {
		t.Errorf("exit %d; not a terminal, and still: %q", code, piped.String())
	}
}

func TestProgressLine(t *testing.T) {
	for _, tc := range []struct {
		done, total int64
		want        string
	}{
		{0, 0, "verify"}, {1500, 0, "verify, 2 kB"}, {0, 4000, "verify [....................] 0 kB of 4 kB"},
		{1000, 4000, "verify [#####...............] 1 kB of 4 kB"}, {5000, 4000, "verify [####################] 5 kB of 4 kB"},
	} {
		p := &progress{what: "verify", unit: kilobytes}
		p.add(tc.done)
		p.expect(tc.total)
		if got := p.line(); !strings.HasPrefix(got, tc.want+", ") {
			t.Errorf("%d of %d: %q", tc.done, tc.total, got)
		}
	}
}
