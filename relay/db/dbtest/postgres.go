package dbtest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/porttest"
	"github.com/penstock/penstock/relay/relaytest"
)

// Postgres is a PostgreSQL server of one test.
type Postgres struct {
	// URL is postgres://postgres@127.0.0.1:<port>/ without the name of a database.
	URL string

	t       testing.TB
	dir     string
	port    int
	args    []string
	process *relaytest.Process
}

// Shared returns the server that tests share. Its URL is in the environment variable
// PENSTOCK_TEST_POSTGRES. A test cannot stop the server. Gateways refuse a server with fsync
// off, so the data directory is in memory instead, if more than 4 GB are free.
func Shared(t testing.TB) *Postgres {
	t.Helper()
	return &Postgres{URL: relaytest.Shared(t, "PENSTOCK_TEST_POSTGRES", func(t testing.TB) string {
		parent := ""
		var memory syscall.Statfs_t
		if syscall.Statfs("/dev/shm", &memory) == nil && memory.Bavail*uint64(memory.Bsize) > 4<<30 {
			parent = "/dev/shm"
		}
		return startPostgres(t, parent, "max_connections=2000", "shared_buffers=256MB", "max_wal_size=512MB", "checkpoint_timeout=1h").URL
	})}
}

// StartPostgres starts a server and stops it when the test ends. args are settings, such as
// max_connections=2000.
func StartPostgres(t testing.TB, args ...string) *Postgres {
	t.Helper()
	return startPostgres(t, "", args...)
}

// startPostgres starts a server with its data directory below parent, or /tmp if parent is empty.
func startPostgres(t testing.TB, parent string, args ...string) *Postgres {
	t.Helper()
	s := newPostgres(t, parent, args)
	s.createData()
	t.Cleanup(s.Kill)
	s.Start()
	return s
}

func newPostgres(t testing.TB, parent string, args []string) *Postgres {
	t.Helper()
	if binary("postgres") == "" {
		if os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1" {
			t.Skip("PostgreSQL is not installed and PENSTOCK_TEST_SKIP_REAL=1")
		}
		t.Fatal("PostgreSQL is not installed: run make deps")
	}
	s := &Postgres{t: t, args: args, port: porttest.Free(t)}
	s.URL = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/", s.port)
	s.dir = relaytest.ShortTempDir(t, parent)
	if credential := owner(); credential != nil {
		relaytest.NoError(t, os.Chown(s.dir, int(credential.Uid), int(credential.Gid)))
	}
	return s
}

// createData copies the data directory from a template, which all tests of this host share,
// because initdb takes seconds.
func (p *Postgres) createData() {
	p.t.Helper()
	version := filepath.Base(filepath.Dir(filepath.Dir(binary("initdb"))))
	template := filepath.Join("/tmp", "penstock-initdb-"+version) // the server may not reach a private TMPDIR
	if _, err := os.Stat(template); err != nil {
		fresh := fmt.Sprintf("%s-%x", template, rand.Uint64())
		defer os.RemoveAll(fresh)
		p.run("initdb", "-D", fresh, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
		// Another test may have created the template first.
		if err := os.Rename(fresh, template); err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.ENOTEMPTY) {
			p.t.Fatal(err)
		}
	}
	if output, err := exec.Command("cp", "-a", template, p.data()).CombinedOutput(); err != nil {
		p.t.Fatalf("cp: %v\n%s", err, output)
	}
}

func (p *Postgres) data() string { return filepath.Join(p.dir, "data") }

// Start starts a stopped server with the same data and waits until it answers.
func (p *Postgres) Start() {
	p.t.Helper()
	p.Kill()
	p.launch()
	p.await()
}

func (p *Postgres) launch() {
	p.t.Helper()
	args := []string{"-D", p.data(), "-p", strconv.Itoa(p.port), "-k", p.dir, "-h", "127.0.0.1", "-c", "max_connections=200", "-c", "shared_buffers=64MB"}
	for _, a := range p.args {
		args = append(args, "-c", a)
	}
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	cmd := p.command("postgres", args...)
	cmd.Stdout, cmd.Stderr = log, log
	p.process = relaytest.StartProcess(p.t, cmd)
}

func (p *Postgres) await() {
	p.t.Helper()
	p.asSuperuser(p.t, func(ctx context.Context, admin *sql.DB) {
		p.awaitCondition(ctx, "postgres answers", func() bool { return admin.PingContext(ctx) == nil })
	})
}

// awaitCondition waits until a condition holds. It fails the test if ctx ends first.
func (p *Postgres) awaitCondition(ctx context.Context, label string, holds func() bool) {
	p.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(p.dir, "log"))
			p.t.Fatalf("timeout after %s: %s\n%s", relaytest.Patience, label, log)
		case <-tick.C:
		}
	}
}

// asSuperuser calls use with a superuser's connection, for at most relaytest.Patience.
func (p *Postgres) asSuperuser(t testing.TB, use func(ctx context.Context, admin *sql.DB)) {
	t.Helper()
	admin, err := sql.Open("pgx", p.URL+"postgres")
	relaytest.NoError(t, err)
	defer admin.Close()
	ctx, cancel := context.WithTimeout(context.Background(), relaytest.Patience)
	defer cancel()
	use(ctx, admin)
}

// Kill kills the server and its children, as in a crash, and waits until they have ended.
func (p *Postgres) Kill() {
	if p.t == nil {
		panic("a test stops the PostgreSQL server that all tests share")
	}
	if p.process == nil {
		return
	}
	pids := p.processes()
	for _, pid := range pids { // the server first, so that it starts no more children
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-p.process.Ended
	p.process = nil
	ctx, cancel := context.WithTimeout(context.Background(), relaytest.Patience)
	defer cancel()
	p.awaitCondition(ctx, "the processes of postgres have ended", func() bool { return !slices.ContainsFunc(pids, isRunning) })
}

// processes returns the ids of the server's process and of its children, which are in process
// groups of their own.
func (p *Postgres) processes() []int {
	pids := []int{p.process.Pid}
	entries, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range entries {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if _, parent := stat(pid); err == nil && parent == strconv.Itoa(p.process.Pid) && isRunning(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isRunning reports whether a process is running; a zombie counts as ended.
func isRunning(pid int) bool {
	state, _ := stat(pid)
	return state != "" && state != "Z"
}

// stat returns the state and the parent of a process, empty if the process does not exist.
func stat(pid int) (state, parent string) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// pid (name) state ppid …; a name may contain blanks and brackets.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if err != nil || len(fields) < 2 {
		return "", ""
	}
	return fields[0], fields[1]
}

// run runs one of PostgreSQL's programs and waits for its end.
func (p *Postgres) run(program string, args ...string) {
	p.t.Helper()
	if output, err := p.command(program, args...).CombinedOutput(); err != nil {
		p.t.Fatalf("%s: %v\n%s", program, err, output)
	}
}

// command returns the command of one of PostgreSQL's programs, in a process group of its own
// and not as root.
func (p *Postgres) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(binary(program), args...)
	cmd.Dir = p.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: owner()}
	return cmd
}

// owner returns the user of the server, or nil for the current user. PostgreSQL refuses to run
// as root.
func owner() *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if errors.Join(err1, err2) == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	return nil
}

// binary returns the path of one of PostgreSQL's programs in the newest installed version.
// Debian installs them outside of the PATH.
func binary(program string) string {
	paths, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program)
	if len(paths) > 0 {
		return slices.Max(paths)
	}
	path, _ := exec.LookPath(program)
	return path
}
