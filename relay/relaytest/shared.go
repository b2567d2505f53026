package relaytest

import (
	"cmp"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

var sharedMu sync.Mutex // serializes Shared

// Shared returns the address of a server that tests share. A run of several packages passes the
// address in an environment variable (deploy/testservers). Without the variable, Shared calls start
// at the first use in this process and sets the variable. start must pass its argument to
// StartProcess, so that the server outlives the test and ends with this process.
func Shared(t testing.TB, variable string, start func(testing.TB) string) string {
	t.Helper()
	sharedMu.Lock()
	defer sharedMu.Unlock()
	address := os.Getenv(variable)
	if address == "" {
		address = start(&process{TB: t})
		NoError(t, os.Setenv(variable, address))
	}
	return address
}

// process is the testing.TB of a shared server: its programs and directories belong to the whole
// process.
type process struct {
	testing.TB
	dirs []string
}

// Cleanup does nothing, because the guard cleans up.
func (*process) Cleanup(func()) {}

// TempDir returns a directory that is removed when this process has ended.
func (p *process) TempDir() string { return ShortTempDir(p, "") }

// ShortTempDir returns a temporary directory of the test below parent, or below /tmp if parent is
// empty. Its path is short enough for a socket, and other users can reach the directory.
func ShortTempDir(t testing.TB, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(cmp.Or(parent, "/tmp"), "penstock-test")
	NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if p, ok := t.(*process); ok {
		p.dirs = append(p.dirs, dir)
	}
	return dir
}

// guardScript waits until its input ends, which happens when this process ends. Then it sends
// SIGQUIT to the server, kills the server if it still runs after ten seconds, and removes its
// directories.
const guardScript = `trap "" INT TERM HUP
read -r _
server=$1
shift
kill -QUIT "$server"
for i in $(seq 100); do
  kill -0 "$server" || break
  sleep 0.1
done
kill -KILL "$server"
rm -rf "$@"`

// guards holds the write ends of the pipes, so that they stay open.
var guards []io.Closer

// guard starts a program that ends a server after this process and removes its directories. Both
// are in process groups of their own, so that an interrupt from the terminal does not reach them.
func (p *process) guard(server *os.Process) {
	reader, writer, err := os.Pipe()
	NoError(p.TB, err)
	guards = append(guards, writer)
	cmd := exec.Command("sh", append([]string{"-c", guardScript, "guard", strconv.Itoa(server.Pid)}, p.dirs...)...)
	cmd.Stdin = reader
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	NoError(p.TB, cmd.Start(), reader.Close())
}
