package kv

import (
	"os"

	"golang.org/x/sys/unix"
)

// datasync makes a file's bytes durable, and its size if that changed.
func datasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// allocate makes room of n zero bytes in a file.
func allocate(f *os.File, offset, n int64) error {
	return unix.Fallocate(int(f.Fd()), 0, offset, n)
}
