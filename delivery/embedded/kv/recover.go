package kv

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// endMark is the name of the pseudo-command that ends a snapshot; its argument
// is the number of frames before it.
const endMark = "END"

// recover brings back the newest snapshot and every log from it on, and makes
// the newest log the one that is written to.
func (s *Server) recover() error {
	snaps, err := generations(s.dir, snapSuffix)
	if err != nil {
		return err
	}
	base := uint64(0)
	if len(snaps) > 0 {
		s.snapGen = snaps[len(snaps)-1]
		if base, err = s.loadSnapshot(s.snapGen); err != nil {
			return err
		}
	}
	if err := removeBefore(s.dir, s.snapGen); err != nil {
		return fmt.Errorf("kv: remove old files: %w", err)
	}
	logs, err := generations(s.dir, logSuffix)
	if err != nil {
		return err
	}
	if len(logs) == 0 {
		return s.firstLog()
	}
	return s.replayLogs(logs, base)
}

func (s *Server) firstLog() error {
	if s.snapGen > 0 {
		return fmt.Errorf("kv: %s is missing, but its snapshot is there: refusing to start without what it held", fileName(s.snapGen, logSuffix))
	}
	s.generation = 1
	f, err := createFile(s.dir, fileHeader{logMagic, 1, 0}, logSuffix)
	if err != nil {
		return err
	}
	s.wal.attach(f, headerSize, 0)
	s.compactAt.Store(s.o.CompactBytes)
	return nil
}

func (s *Server) loadSnapshot(generation uint64) (base uint64, err error) {
	name := fileName(generation, snapSuffix)
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return 0, fmt.Errorf("kv: read snapshot: %w", err)
	}
	h, err := parseHeader(b, snapMagic)
	if err != nil {
		return 0, fmt.Errorf("kv: %s: %w", name, err)
	}
	ended, offset, seq := false, headerSize, uint64(0)
	for offset < len(b) && !ended {
		got, payload, n, err := parseFrame(b[offset:])
		if err != nil || got != seq+1 {
			return 0, fmt.Errorf("kv: %s: damaged frame at offset %d: the snapshot cannot be used; restore the directory from a copy", name, offset)
		}
		if ended, err = s.loadFrame(payload, seq); err != nil {
			return 0, fmt.Errorf("kv: %s: frame at offset %d: %w", name, offset, err)
		}
		seq, offset = got, offset+n
	}
	if !ended {
		return 0, fmt.Errorf("kv: %s: no end at offset %d: the snapshot is cut off; restore the directory from a copy", name, offset)
	}
	s.compactAt.Store(max(s.o.CompactBytes, 2*int64(len(b))))
	return h.base, nil
}

// loadFrame applies one frame of a snapshot and says whether it was the end.
func (s *Server) loadFrame(payload []byte, before uint64) (bool, error) {
	recs, err := parseRecords(payload)
	if err != nil {
		return false, err
	}
	if len(recs) == 1 && len(recs[0].writes) == 1 && recs[0].writes[0].args[0] == endMark {
		args := recs[0].writes[0].args
		if len(args) != 2 || args[1] != strconv.FormatUint(before, 10) {
			return false, errors.New("the snapshot's end does not fit its frames")
		}
		return true, nil
	}
	return false, s.apply(recs)
}

// apply runs the writes of a log or snapshot again. Each must end as it did.
func (s *Server) apply(recs []record) error {
	for _, r := range recs {
		s.setTime(r.micros)
		for _, w := range r.writes {
			if _, ok := s.writes[strings.ToUpper(w.args[0])]; !ok {
				return fmt.Errorf("%q is no command of the log", w.args[0])
			}
			reply := s.write(w.args, false)
			if isError(reply) != w.failed {
				return fmt.Errorf("%s came to another end than before: %q", w.args[0], bytes.TrimSpace(reply))
			}
			s.record = s.record[:0]
		}
	}
	return nil
}

func (s *Server) replayLogs(logs []uint64, seq uint64) error {
	if s.snapGen > 0 && logs[0] != s.snapGen {
		return fmt.Errorf("kv: %s is missing, but its snapshot is there: refusing to start without what it held", fileName(s.snapGen, logSuffix))
	}
	for i, generation := range logs {
		l, err := readLog(s.dir, generation)
		if err != nil {
			return err
		}
		if l.head.base != seq {
			return fmt.Errorf("kv: %s begins after frame %d, but the files before it end with frame %d: a log is missing or was cut; refusing to start", l.name, l.head.base, seq)
		}
		if seq, err = s.replay(l, seq); err != nil {
			return err
		}
		if i < len(logs)-1 {
			s.wal.base += int64(l.good)
			continue
		}
		if err := s.resume(l, seq); err != nil {
			return err
		}
	}
	if s.compactAt.Load() == 0 {
		s.compactAt.Store(s.o.CompactBytes)
	}
	return nil
}

// logFile is a log that was read into memory; good is where its frames end.
type logFile struct {
	name       string
	generation uint64
	head       fileHeader
	b          []byte
	good       int
}

func readLog(dir string, generation uint64) (*logFile, error) {
	name := fileName(generation, logSuffix)
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("kv: read log: %w", err)
	}
	h, err := parseHeader(b, logMagic)
	if err != nil {
		return nil, fmt.Errorf("kv: %s: %w; restore the directory from a copy", name, err)
	}
	return &logFile{name: name, generation: generation, head: h, b: b, good: headerSize}, nil
}

// replay applies the frames of a log up to its end or to the first that is not
// good. That one was being written when the process ended, unless a good frame
// follows: then it had been acknowledged, and losing it must be decided by a
// person.
func (s *Server) replay(l *logFile, seq uint64) (uint64, error) {
	for l.good < len(l.b) {
		got, payload, n, err := parseFrame(l.b[l.good:])
		if err != nil || got != seq+1 {
			break
		}
		recs, err := parseRecords(payload)
		if err == nil {
			err = s.apply(recs)
		}
		if err != nil {
			return 0, fmt.Errorf("kv: %s: frame at offset %d: %w", l.name, l.good, err)
		}
		seq, l.good = got, l.good+n
	}
	if next := findFrame(l.b[l.good:], seq+1); next >= 0 {
		return 0, fmt.Errorf("kv: %s: damaged at offset %d, and good frames follow at offset %d: what was acknowledged would be lost; "+
			"to give up everything from there on, keep a copy of the directory, delete the newer logs and cut this one: truncate -s %d %s",
			l.name, l.good, l.good+next, l.good, l.name)
	}
	return seq, nil
}

// resume makes a log the one that is written to, without its torn tail.
func (s *Server) resume(l *logFile, seq uint64) error {
	f, err := os.OpenFile(filepath.Join(s.dir, l.name), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("kv: open log: %w", err)
	}
	if torn := bytes.TrimRight(l.b[l.good:], "\x00"); len(torn) > 0 {
		s.o.Logger.Warn("embedded store dropped an unacknowledged write at the end of its log", "file", l.name, "offset", l.good, "bytes", len(torn))
	}
	if err := errors.Join(f.Truncate(int64(l.good)), f.Sync()); err != nil {
		return errors.Join(fmt.Errorf("kv: cut log: %w", err), f.Close())
	}
	s.generation = l.generation
	s.wal.attach(f, int64(l.good), seq)
	return nil
}
