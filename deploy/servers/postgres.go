package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Postgres starts a PostgreSQL with its defaults: a commit is answered once it is on disk. The
// database and the user are called postgres, and the user has no password.
func (r *Run) Postgres(ctx context.Context, args ...string) (*Server, error) {
	dir, err := r.postgresDir()
	if err != nil {
		return nil, err
	}
	if err := initPostgres(ctx, dir); err != nil {
		return nil, err
	}
	s := r.postgresIn(dir, args...)
	return s, s.Start(ctx)
}

// initPostgres creates an empty database in dir/data.
func initPostgres(ctx context.Context, dir string) error {
	initdb := postgresCommand(ctx, dir, "initdb", "-D", filepath.Join(dir, "data"), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
	if output, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, output)
	}
	return nil
}

// postgresIn returns a PostgreSQL with its data in dir/data. It does not start it.
func (r *Run) postgresIn(dir string, args ...string) *Server {
	s := &Server{Addr: FreeAddr(), Dir: dir}
	_, port, _ := net.SplitHostPort(s.Addr)
	args = append([]string{"-D", filepath.Join(dir, "data"), "-p", port, "-h", "127.0.0.1", "-k", ""}, args...)
	s.launch = func(ctx context.Context) (*exec.Cmd, error) {
		cmd := postgresCommand(ctx, dir, "postgres", args...)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // PostgreSQL then ends its children
		return cmd, r.Launch("postgres", cmd)
	}
	s.ready = func(ctx context.Context) error {
		return Until(ctx, StartTime, s.Addr+" to be reachable", func() bool {
			c, err := DialPostgres(ctx, s.Addr)
			if err == nil {
				_ = c.Close(ctx)
			}
			return err == nil
		})
	}
	return s
}

// DialPostgres connects to the database of a server that Postgres started.
func DialPostgres(ctx context.Context, addr string) (*pgx.Conn, error) {
	return pgx.Connect(ctx, PostgresURL(addr))
}

// PostgresURL returns the URL of the database at addr, which may be a proxy or a list of hosts.
func PostgresURL(addr string) string {
	return "postgres://postgres@" + addr + "/postgres?sslmode=disable"
}

// postgresDir creates a directory that belongs to postgresUser, and makes r.Dir accessible for that
// user.
func (r *Run) postgresDir() (string, error) {
	dir, err := os.MkdirTemp(r.Dir, "postgres")
	if err != nil {
		return "", err
	}
	credential := postgresUser()
	if credential == nil {
		return dir, nil
	}
	return dir, errors.Join(os.Chmod(r.Dir, 0o711), os.Chown(dir, int(credential.Uid), int(credential.Gid)))
}

// postgresCommand returns a command that runs one of PostgreSQL's programs as postgresUser.
func postgresCommand(ctx context.Context, dir, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, postgresBinary(program), args...)
	cmd.Dir = dir
	if credential := postgresUser(); credential != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	}
	return cmd
}

// postgresBinary returns the path of the newest version of a program, which Debian installs
// outside the PATH.
func postgresBinary(program string) string {
	if paths, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program); len(paths) > 0 {
		return slices.Max(paths)
	}
	return program
}

// postgresUser returns the user that runs PostgreSQL, or nil for the current user. PostgreSQL
// refuses to run as root.
func postgresUser() *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if errors.Join(err1, err2) != nil {
		return nil
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
