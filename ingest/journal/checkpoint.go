package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

const (
	checkpointSuffix = ".checkpoint"
	slotSize         = 20      // [crc32c 4][generation 8][sequence 8]
	slotDistance     = 4 << 10 // each slot has its own page, so that a torn write damages one slot only
)

// checkpoint is a file with two slots, which are written alternately: if a write is torn,
// the other slot still has the previous sequence.
type checkpoint struct {
	f     file
	gen   uint64 // the generation of the newer slot
	seq   atomic.Uint64
	dirty bool // written, but not synced
}

func putSlot(b []byte, gen, seq uint64) {
	binary.LittleEndian.PutUint64(b[4:], gen)
	binary.LittleEndian.PutUint64(b[12:], seq)
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:slotSize], castagnoli()))
}

func parseCheckpoint(b []byte) (gen, seq uint64, ok bool) {
	for _, off := range []int{0, slotDistance} {
		if len(b) < off+slotSize {
			break
		}
		slot := b[off : off+slotSize]
		slotGen := binary.LittleEndian.Uint64(slot[4:])
		intact := binary.LittleEndian.Uint32(slot) == crc32.Checksum(slot[4:], castagnoli())
		if intact && (!ok || slotGen > gen) {
			gen, seq, ok = slotGen, binary.LittleEndian.Uint64(slot[12:]), true
		}
	}
	return gen, seq, ok
}

// createCheckpoint creates the file of a checkpoint at its full size, so that a commit never
// needs more disk space. The file is durable when createCheckpoint returns.
func createCheckpoint(path string, d disk) (file, error) {
	f, err := d.Open(path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 2*slotDistance)
	putSlot(b, 0, 0)
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = f.Datasync()
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err == nil {
		err = d.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// store writes seq to the older slot. The sequence survives the end of the process
// immediately, and a power failure after the next sync.
func (c *checkpoint) store(seq uint64) error {
	var b [slotSize]byte
	gen := c.gen + 1
	putSlot(b[:], gen, seq)
	if _, err := c.f.WriteAt(b[:], int64(gen%2)*slotDistance); err != nil {
		return err
	}
	c.gen, c.dirty = gen, true
	c.seq.Store(seq)
	return nil
}

func (c *checkpoint) sync() error {
	if !c.dirty {
		return nil
	}
	c.dirty = false
	return c.f.Datasync()
}

// loadCheckpoints loads the consumers of earlier runs. Records that a consumer has not
// processed are kept even while the consumer is not open.
func (l *Log) loadCheckpoints() error {
	paths, err := filepath.Glob(filepath.Join(l.dir, "*"+checkpointSuffix))
	if err != nil {
		return fmt.Errorf("list checkpoints: %w", err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("open checkpoint: %w", err)
		}
		f, err := l.opts.disk.Open(path, os.O_RDWR)
		if err != nil {
			return fmt.Errorf("open checkpoint: %w", err)
		}
		gen, seq, intact := parseCheckpoint(b)
		if !intact { // the sequence becomes 0: processing records again loses nothing
			l.opts.Logger.Error("journal: checkpoint unreadable, consumer starts at the oldest record", "file", path)
		}
		name := strings.TrimSuffix(filepath.Base(path), checkpointSuffix)
		l.consumers[name] = newConsumer(l, name, f, gen, seq)
	}
	return nil
}

func (l *Log) syncCheckpoints() error {
	l.state.RLock()
	consumers := slices.Collect(maps.Values(l.consumers))
	l.state.RUnlock()
	var errs []error
	for _, c := range consumers {
		errs = append(errs, c.sync())
	}
	return errors.Join(errs...)
}
