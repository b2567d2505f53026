package app

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/relay/relaytest"
)

// runCommand runs a command and returns its exit code and output.
func runCommand(t *testing.T, variables []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = Run(args, client.Environment{Context: t.Context(), Variables: variables, Stdout: &out, Stderr: &errs, Version: "v1.2.3"})
	return code, out.String(), errs.String()
}

func TestHelpCommandPrintsTheSameAsTheFlag(t *testing.T) {
	for _, name := range []string{"", "apply", "token add"} {
		code, help, _ := runCommand(t, nil, append([]string{"help"}, strings.Fields(name)...)...)
		_, want, _ := runCommand(t, nil, append(strings.Fields(name), "--help")...)
		relaytest.Equal(t, "the exit code of help "+name, code, exitDone)
		relaytest.Equal(t, "help "+name, help, want)
	}
	code, _, stderr := runCommand(t, nil, "help", "token", "lend")
	relaytest.Equal(t, "the exit code for an unknown command", code, exitUsage)
	relaytest.Equal(t, "the error", stderr, "penstock: unknown command \"token lend\": penstock help lists the commands\n")
}

// TestTheManualPageRenders checks samples of the manual page, and that man prints no warning.
func TestTheManualPageRenders(t *testing.T) {
	code, page, _ := runCommand(t, nil, "man")
	relaytest.Equal(t, "the exit code", code, exitDone)
	for _, text := range []string{".TH PENSTOCK 1", `.SS penstock check\-config <file>`, ".SS penstock token revoke", `.B \-\-allow\-removals=N`, "PENSTOCK_SERVER"} {
		if !strings.Contains(page, text) {
			t.Errorf("the manual page lacks %q", text)
		}
	}
	requireProgram(t, "man")
	file := filepath.Join(t.TempDir(), "penstock.1")
	relaytest.NoError(t, os.WriteFile(file, []byte(page), 0o600))
	command := exec.CommandContext(t.Context(), "man", "--warnings", "-l", file)
	command.Env = append(os.Environ(), "MANWIDTH=100", "MANPAGER=cat", "LC_ALL=C.UTF-8")
	var warnings strings.Builder
	command.Stderr = &warnings
	rendered, err := command.Output()
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the warnings", warnings.String(), "")
	if !strings.Contains(string(rendered), "penstock token add") {
		t.Errorf("the rendered page is %s, want penstock token add in it", rendered)
	}
}

// If the address is in use, the start fails before it creates files.
func TestServeReportsAnAddressInUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed below
	relaytest.NoError(t, err)
	defer func() { _ = listener.Close() }()
	dir := filepath.Join(t.TempDir(), "data")
	code, _, stderr := runCommand(t, []string{"PENSTOCK_LISTEN=" + listener.Addr().String(), "PENSTOCK_DATA_DIR=" + dir}, "serve")
	relaytest.Equal(t, "the exit code", code, exitFailed)
	want := "penstock: listen (PENSTOCK_LISTEN): another program listens on " + listener.Addr().String() + ": stop it, or choose another address: "
	if !strings.HasPrefix(stderr, want) {
		t.Errorf("stderr = %q, want prefix %q", stderr, want)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("stat of the data directory: error = %v, want fs.ErrNotExist", err)
	}
}
