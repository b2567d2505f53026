package kv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// snapshotFrame is about how many bytes of a snapshot are made at a time with
// the lock held, and about how many a record or a frame of it has, however large
// the key is.
const snapshotFrame = 128 << 10

var errStopped = errors.New("kv: compaction: the store was closed")

// compactIfDue starts a compaction when the log has outgrown its snapshot.
func (s *Server) compactIfDue() {
	if s.wal.bytes() < s.compactAt.Load() || !s.compacting.CompareAndSwap(false, true) {
		return
	}
	s.work.Go(func() {
		defer s.compacting.Store(false)
		start := time.Now()
		size, err := s.compact()
		if err != nil {
			s.compactAt.Store(2 * s.wal.bytes())
			if !errors.Is(err, errStopped) {
				s.o.Logger.Warn("embedded store could not compact its log", "err", err)
			}
			return
		}
		s.compactAt.Store(max(s.o.CompactBytes, 2*size))
		s.lastCompacted.Store(s.o.Now().UnixMicro())
		s.o.Logger.Info("embedded store compacted its log", "bytes", size, "took", time.Since(start))
	})
}

// compact starts a new log, writes what the store held at that moment to a
// snapshot, and deletes what came before. Until the snapshot has its name, the
// old snapshot and all logs together are the state; from then on, the new ones.
func (s *Server) compact() (int64, error) {
	generation, base, err := s.rotate()
	if err != nil {
		return 0, err
	}
	size, err := s.writeSnapshot(fileHeader{snapMagic, generation, base})
	s.mu.Lock()
	s.snap = nil
	s.mu.Unlock()
	if err != nil {
		return 0, errors.Join(err, os.Remove(filepath.Join(s.dir, fileName(generation, snapSuffix)+tmpSuffix)))
	}
	s.wal.forget()
	s.snapGen = generation
	return size, removeBefore(s.dir, generation)
}

// rotate goes on in a new log and marks the moment that the snapshot shows.
func (s *Server) rotate() (generation, base uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, 0, errStopped
	}
	if err := s.wal.flush(); err != nil {
		return 0, 0, err
	}
	generation, base = s.generation+1, s.wal.frame
	f, err := createFile(s.dir, fileHeader{logMagic, generation, base}, logSuffix)
	if err != nil {
		return 0, 0, err
	}
	s.wal.rotate(f)
	s.generation = generation
	s.snap = newSnapshot(s)
	return generation, base, nil
}

func (s *Server) writeSnapshot(h fileHeader) (int64, error) {
	name := filepath.Join(s.dir, fileName(h.generation, snapSuffix))
	f, err := os.OpenFile(name+tmpSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return 0, fmt.Errorf("kv: create snapshot: %w", err)
	}
	size, err := s.fillSnapshot(f, h)
	if err == nil {
		err = publishFile(f, s.dir, name)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, fmt.Errorf("kv: write snapshot: %w", err)
	}
	return size, nil
}

func (s *Server) fillSnapshot(f *os.File, h fileHeader) (size int64, err error) {
	frames := uint64(0)
	out := h.encode()
	for {
		some, more, err := s.nextFrames()
		if err != nil {
			return 0, err
		}
		for _, records := range some {
			frames++
			out = appendFrame(out, frames, records)
		}
		if !more {
			end := appendWrite(nil, false, []string{endMark, strconv.FormatUint(frames, 10)})
			out = appendFrame(out, frames+1, appendRecord(nil, 0, end))
		}
		n, err := f.Write(out)
		size += int64(n)
		if err != nil || !more {
			return size, err
		}
		out = out[:0]
	}
}

func (s *Server) nextFrames() (frames [][]byte, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, errStopped
	}
	s.snap.some()
	frames, s.snap.frames = s.snap.frames, nil
	return frames, len(s.snap.pending) > 0, nil
}
