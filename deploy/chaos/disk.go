package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// disk is a file system in a file, which one gateway uses alone and a fault can fill.
type disk struct{ dir string }

// newDisk creates a file system and mounts it at a new directory. It needs root.
func newDisk(ctx context.Context, dir string) (*disk, error) {
	const size = 16 << 30 // the file is sparse
	image := dir + ".ext4"
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, size), os.Mkdir(dir, 0o700)); err != nil {
		return nil, err
	}
	for _, args := range [][]string{{"mkfs.ext4", "-q", "-m", "0", image}, {"mount", "-o", "loop", image, dir}} {
		if output, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", args[0], err, output)
		}
	}
	return &disk{dir}, nil
}

// remove unmounts the file system.
func (d *disk) remove() { _ = syscall.Unmount(d.dir, syscall.MNT_DETACH) }

func (d *disk) filler() string { return filepath.Join(d.dir, "filler") }

// fill allocates all free space.
func (d *disk) fill() error {
	f, err := os.Create(d.filler())
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	const block = 4 << 10
	for offset, size := int64(0), int64(1<<30); size >= block; {
		switch err := syscall.Fallocate(int(f.Fd()), 0, offset, size); {
		case err == nil:
			offset += size
		case errors.Is(err, syscall.ENOSPC):
			size /= 2
		default:
			return err
		}
	}
	return nil
}

// makeRoom frees the space that fill allocated.
func (d *disk) makeRoom() error { return os.Remove(d.filler()) }

// diskFaults returns the faults of the gateways' disks, or nil if a gateway has no disk of its own.
func (s *site) diskFaults(pick func() *gateway) []fault {
	if slices.ContainsFunc(s.gateways, func(g *gateway) bool { return g.disk == nil }) {
		return nil
	}
	return []fault{
		{"a gateway's disk is full", func(ctx context.Context, length time.Duration) error {
			g := pick()
			if err := g.disk.fill(); err != nil {
				return err
			}
			wait(ctx, length)
			if err := g.disk.makeRoom(); err != nil {
				return err
			}
			return g.ready(ctx)
		}},
	}
}
