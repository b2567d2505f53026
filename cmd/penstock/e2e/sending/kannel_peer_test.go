package sending

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/porttest"
	"github.com/penstock/penstock/relay/relaytest"
)

// kannelPage is the documentation for operators. Kannel runs with the configuration on this page,
// with other ports, folders and another token.
const kannelPage = "docs/kannel.md"

// kannelBlock returns a fenced block of the page. replace has pairs of old and new text; every
// old text must be in the block.
func kannelBlock(t *testing.T, language string, replace ...string) string {
	t.Helper()
	block := e2e.CodeBlock(t, kannelPage, language)
	for pair := range slices.Chunk(replace, 2) {
		if !strings.Contains(block, pair[0]) {
			t.Fatalf("the block %s of %s does not contain %q", language, kannelPage, pair[0])
		}
	}
	return strings.NewReplacer(replace...).Replace(block)
}

// kannelPrograms returns the paths of Kannel's programs by name. If a program is missing, it fails
// the test, or skips the test if PENSTOCK_TEST_SKIP_REAL=1.
func kannelPrograms(t *testing.T) map[string]string {
	t.Helper()
	paths := make(map[string]string)
	for name, folder := range map[string]string{"bearerbox": "/usr/sbin", "smsbox": "/usr/sbin", "fakesmsc": "/usr/lib/kannel/test"} {
		path, err := exec.LookPath(name)
		if err != nil {
			path, err = exec.LookPath(filepath.Join(folder, name))
		}
		switch {
		case err == nil:
			paths[name] = path
		case os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1":
			t.Skipf("skipped: no %s (packages kannel, kannel-extras), and PENSTOCK_TEST_SKIP_REAL=1", name)
		default:
			t.Fatalf("no %s: install kannel and kannel-extras (PENSTOCK_TEST_SKIP_REAL=1 skips)", name)
		}
	}
	return paths
}

func kannelPort(t *testing.T) string {
	t.Helper()
	return strconv.Itoa(porttest.Free(t))
}

// kannel is a running bearerbox and smsbox.
type kannel struct {
	t         *testing.T
	programs  map[string]string
	bearerbox *kannelChild
	smsbox    *kannelChild
	port      string // of the simulated carrier
}

// startKannel starts bearerbox and smsbox with the configuration in kannelPage. They post to addr.
func startKannel(t *testing.T, addr string, replace ...string) *kannel {
	t.Helper()
	k := &kannel{t: t, programs: kannelPrograms(t), port: kannelPort(t)}
	file := filepath.Join(t.TempDir(), "kannel.conf")
	text := kannelBlock(t, "kannel", append(replace,
		"13000", kannelPort(t), "13001", kannelPort(t), "13013", kannelPort(t), "10000", k.port,
		"/var/spool/kannel", t.TempDir(), "/var/log/kannel", t.TempDir(), "TOKEN@127.0.0.1:8080", kannelToken+"@"+addr)...)
	relaytest.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	k.bearerbox = runKannelProgram(t, nil, k.programs["bearerbox"], file)
	k.bearerbox.awaitOutput("Start-up done")
	k.smsbox = runKannelProgram(t, nil, k.programs["smsbox"], file)
	k.bearerbox.awaitOutput("Client connected from <127.0.0.1>")
	return k
}

// carry starts fakesmsc, which sends a message to bearerbox for each line.
func (k *kannel) carry(lines []string) *kannelChild {
	k.t.Helper()
	for _, line := range lines {
		if len(line) > 254 { // fakesmsc's buffer
			k.t.Fatalf("the line is too long: %q", line)
		}
	}
	stdin := filepath.Join(k.t.TempDir(), "messages")
	relaytest.NoError(k.t, os.WriteFile(stdin, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	f := relaytest.Must(os.Open(stdin))(k.t)
	defer func() { _ = f.Close() }()
	n := fmt.Sprint(len(lines))
	smsc := runKannelProgram(k.t, f, k.programs["fakesmsc"], "-H", "127.0.0.1", "-r", k.port, "-i", "0", "-m", n)
	smsc.awaitOutput("fakesmsc: sent message " + n + "\n")
	return smsc
}

// end stops smsbox and then bearerbox, so that no message is in flight afterwards.
func (k *kannel) end() {
	k.smsbox.stop()
	k.bearerbox.stop()
}

// kannelGateway runs a gateway with embedded back ends and the inventory in kannelPage.
func kannelGateway(t *testing.T, sink string) *e2e.Gateway {
	t.Helper()
	return e2e.Start(t, e2e.Embedded(), kannelBlock(t, "yaml", "TOKEN", kannelToken, "http://127.0.0.1:9099", sink))
}
