package journal

import "golang.org/x/sys/unix"

func (f osFile) Datasync() error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}

func (f osFile) Allocate(size int64) error {
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
}

func (f osFile) Uncache() error { return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
