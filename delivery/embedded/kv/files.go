package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	logSuffix  = ".log"
	snapSuffix = ".snap"
	tmpSuffix  = ".tmp"
)

func fileName(generation uint64, suffix string) string {
	return fmt.Sprintf("%010d%s", generation, suffix)
}

// lockDir makes the directory and takes it for this process.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("kv: make directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "LOCK"), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, fmt.Errorf("kv: lock directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("kv: directory %s is in use by process %s: only one process can run on it", dir, holder(f))
		}
		return nil, fmt.Errorf("kv: lock directory %s: %w", dir, err)
	}
	pid := strconv.Itoa(os.Getpid())
	_, err = f.WriteAt([]byte(pid+"\n"), 0)
	if err = errors.Join(err, f.Truncate(int64(len(pid)+1))); err != nil {
		return nil, errors.Join(fmt.Errorf("kv: lock directory: %w", err), f.Close())
	}
	return f, nil
}

func holder(f *os.File) string {
	b := make([]byte, 20)
	n, _ := f.ReadAt(b, 0)
	if pid := strings.TrimSpace(string(b[:n])); pid != "" {
		return pid
	}
	return "unknown"
}

// generations lists the files with a suffix, oldest first.
func generations(dir, suffix string) ([]uint64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("kv: list directory: %w", err)
	}
	var out []uint64
	for _, e := range entries {
		if n, err := strconv.ParseUint(strings.TrimSuffix(e.Name(), suffix), 10, 64); err == nil && strings.HasSuffix(e.Name(), suffix) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// createFile makes a file that is there whole, with its header, or not at all.
func createFile(dir string, h fileHeader, suffix string) (*os.File, error) {
	name := filepath.Join(dir, fileName(h.generation, suffix))
	f, err := os.OpenFile(name+tmpSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return nil, fmt.Errorf("kv: create %s: %w", filepath.Base(name), err)
	}
	_, err = f.Write(h.encode())
	if err = errors.Join(err, publishFile(f, dir, name)); err != nil {
		os.Remove(name) // it may have its name already, but will not be written to
		return nil, errors.Join(fmt.Errorf("kv: create %s: %w", filepath.Base(name), err), f.Close())
	}
	return f, nil
}

// publishFile gives a file that was written under a temporary name its own.
func publishFile(f *os.File, dir, name string) error {
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(name+tmpSuffix, name); err != nil {
		return err
	}
	return syncDir(dir)
}

// removeBefore deletes the files that a snapshot of this generation replaces,
// and what unfinished compactions left.
func removeBefore(dir string, generation uint64) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		number, suffix, _ := strings.Cut(name, ".")
		n, err := strconv.ParseUint(number, 10, 64)
		old := err == nil && n < generation && (suffix == logSuffix[1:] || suffix == snapSuffix[1:])
		if !old && !strings.HasSuffix(name, tmpSuffix) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
