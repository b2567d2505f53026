package main

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
)

// startPostgres starts a PostgreSQL with its defaults, so that a commit is on disk
// when it is answered.
func (p *peers) startPostgres(ctx context.Context) (*exec.Cmd, string, error) {
	dir, err := p.postgresDir()
	if err != nil {
		return nil, "", err
	}
	data := filepath.Join(dir, "data")
	initdb := postgresCommand(ctx, dir, "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("initdb: %w\n%s", err, out)
	}
	addr := freeAddr()
	_, port, _ := net.SplitHostPort(addr)
	cmd := postgresCommand(ctx, dir, "postgres", "-D", data, "-p", port, "-h", "127.0.0.1", "-k", "")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // it ends its children
	if err := p.launch("postgres", cmd); err != nil {
		return nil, "", err
	}
	return cmd, addr, p.explain(cmd, until(ctx, startTime, addr+" reachable", func() bool {
		c, err := dialPostgres(ctx, addr)
		if err == nil {
			_ = c.Close(ctx)
		}
		return err == nil
	}))
}

// postgresDir makes a directory of the user that the server runs as, who must be
// able to reach it.
func (p *peers) postgresDir() (string, error) {
	dir := filepath.Join(p.dir, "postgres"+strconv.Itoa(p.runs))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	who := postgresUser()
	if who == nil {
		return dir, nil
	}
	return dir, errors.Join(os.Chmod(p.dir, 0o711), os.Chown(dir, int(who.Uid), int(who.Gid)))
}

// postgresCommand is one of PostgreSQL's programs.
func postgresCommand(ctx context.Context, dir, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, postgresBinary(program), args...)
	cmd.Dir = dir
	if who := postgresUser(); who != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	}
	return cmd
}

// postgresBinary is the newest program of that name; Debian keeps them outside the
// PATH.
func postgresBinary(program string) string {
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program); len(found) > 0 {
		return slices.Max(found)
	}
	return program
}

// postgresUser is whom the server runs as, nil for ourselves: PostgreSQL refuses
// root.
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
