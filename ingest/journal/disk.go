package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// disk is the part of the file system that the log uses. Tests replace it to inject faults.
type disk interface {
	Open(path string, flag int) (file, error)
	SyncDir(dir string) error
}

type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Datasync() error           // writes the data and its location to the disk
	Allocate(size int64) error // reserves space without changing the size
	Uncache() error            // drops cached pages, so that later reads come from the disk
}

type osDisk struct{}

func (osDisk) Open(path string, flag int) (file, error) {
	f, err := os.OpenFile(path, flag, 0o640)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osDisk) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

type osFile struct{ *os.File }

func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// makeDir creates dir and its parents, durably.
func makeDir(dir string, d disk) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if parent != dir {
		if err := makeDir(parent, d); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o750); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return d.SyncDir(parent)
}

// LockDir locks the directory and writes the process id to the lock file. The kernel
// releases the lock when the process ends.
func LockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, fmt.Errorf("journal: open lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("journal: lock %s: %w", dir, err)
		}
		pid, _ := io.ReadAll(io.LimitReader(f, 32))
		return nil, fmt.Errorf("journal: %s: %w by process %s", dir, ErrLocked, strings.TrimSpace(string(pid)))
	}
	// The process id is informational: on a full disk the lock works without it.
	if err := f.Truncate(0); err == nil {
		_, _ = fmt.Fprintln(f, os.Getpid())
	}
	return f, nil
}
