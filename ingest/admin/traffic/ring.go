// Package traffic keeps what a gateway counted in each minute of the last day, in
// a file of fixed size, so that an installation without a metrics server has
// charts of its traffic, also after a restart.
//
// The counts are for charts. Nothing else depends on them: a damaged file
// is replaced by a new one, and a gateway that cannot write it works on.
package traffic

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// Minutes is the number of minutes in the ring: one day.
const Minutes = 24 * 60

// Series is one thing that is counted.
type Series struct {
	Name string
	// Max reports that a longer step has the largest value of its minutes, as a length of a
	// queue has, instead of their sum.
	Max bool
}

// headSize is the size of the file's head: what it is, and a sum over the names
// of its series. A program with other series starts a new file.
const headSize = 40

const magic = "PENSTKT1"

// Ring holds the counts.
type Ring struct {
	series []Series
	log    *slog.Logger

	mu      sync.Mutex
	file    *os.File // nil if it cannot be written
	broken  bool     // the last write failed, and that was logged
	minutes [Minutes]minute
}

// minute is the counts of one minute, numbered from 1970; 0 for none.
type minute struct {
	offset int64
	counts []uint64
}

// Open reads the ring in a file, or makes it. What is damaged is logged and left
// out. A file that cannot be opened is logged as well: the ring is in memory then.
func Open(path string, series []Series, log *slog.Logger) *Ring {
	r := &Ring{series: series, log: log}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		log.Warn("the traffic of the last day is kept in memory only: its file cannot be opened", "path", path, "error", err)
		return r
	}
	r.file = file
	if err := r.read(); err != nil {
		log.Warn("the charts of the last day's traffic begin anew", "path", path, "reason", err)
		r.minutes = [Minutes]minute{}
		if err := r.format(); err != nil {
			r.failed(err)
		}
	}
	return r
}

// Close closes the file.
func (r *Ring) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return nil
	}
	file := r.file
	r.file = nil
	return file.Close()
}

func (r *Ring) recordSize() int { return 8 + 8*len(r.series) + 4 }

func (r *Ring) head() []byte {
	names := make([]string, len(r.series))
	for i, s := range r.series {
		names[i] = s.Name
	}
	sum := sha256.Sum256([]byte(strings.Join(names, "\n")))
	return append([]byte(magic), sum[:]...)
}

// format makes the file an empty ring.
func (r *Ring) format() error {
	if err := r.file.Truncate(0); err != nil {
		return err
	}
	if err := r.file.Truncate(int64(headSize + Minutes*r.recordSize())); err != nil {
		return err
	}
	_, err := r.file.WriteAt(r.head(), 0)
	return err
}

// read fills the ring from the file. A record whose sum is wrong, as a power cut leaves it,
// is left out; a file that is not a ring of these series is an error.
func (r *Ring) read() error {
	content, err := io.ReadAll(io.LimitReader(r.file, int64(headSize+Minutes*r.recordSize()+1)))
	switch {
	case err != nil:
		return err
	case len(content) == 0:
		return r.format() // a new file
	case len(content) != headSize+Minutes*r.recordSize():
		return fmt.Errorf("the file has %d bytes, want %d", len(content), headSize+Minutes*r.recordSize())
	case !bytes.Equal(content[:headSize], r.head()):
		return errors.New("the file is of another version, or damaged")
	}
	damaged := 0
	for slot := range r.minutes {
		record := content[headSize+slot*r.recordSize():][:r.recordSize()]
		m, ok := r.parse(record)
		if !ok || m.offset != 0 && slotOf(m.offset) != slot {
			damaged++
			continue
		}
		r.minutes[slot] = m
	}
	if damaged > 0 {
		r.log.Warn("minutes are missing in the charts of the last day's traffic: their records are damaged", "minutes", damaged)
	}
	return nil
}

// parse reads a record; all zeros is an empty one.
func (r *Ring) parse(record []byte) (minute, bool) {
	body := record[:len(record)-4]
	if sum := binary.BigEndian.Uint32(record[len(body):]); sum != crc32.ChecksumIEEE(body) {
		return minute{}, len(bytes.Trim(record, "\x00")) == 0
	}
	m := minute{offset: int64(binary.BigEndian.Uint64(body)), counts: make([]uint64, len(r.series))} //nolint:gosec // minutes since 1970
	for i := range m.counts {
		m.counts[i] = binary.BigEndian.Uint64(body[8+8*i:])
	}
	return m, m.offset > 0
}

func slotOf(offset int64) int { return int(offset % Minutes) }

// Add adds counts to the minute of a time; of a series with Max the larger value
// stays.
func (r *Ring) Add(now time.Time, counts []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	offset := now.Unix() / 60
	if offset <= 0 {
		return
	}
	m := &r.minutes[slotOf(offset)]
	if m.offset != offset {
		*m = minute{offset: offset, counts: make([]uint64, len(r.series))}
	}
	for i, n := range counts {
		m.counts[i] = r.series[i].join(m.counts[i], n)
	}
	if r.file == nil {
		return
	}
	if _, err := r.file.WriteAt(m.record(), int64(headSize+slotOf(offset)*r.recordSize())); err != nil {
		r.failed(err)
		return
	}
	r.broken = false
}

func (s Series) join(a, b uint64) uint64 {
	if s.Max {
		return max(a, b)
	}
	return a + b
}

// failed logs an error of the file, once until a write succeeds again.
func (r *Ring) failed(err error) {
	if !r.broken {
		r.log.Warn("the traffic of the last day cannot be written; its charts lose what a restart would need", "path", r.file.Name(), "error", err)
	}
	r.broken = true
}

func (m *minute) record() []byte {
	buf := binary.BigEndian.AppendUint64(nil, uint64(m.offset)) //nolint:gosec // minutes since 1970
	for _, n := range m.counts {
		buf = binary.BigEndian.AppendUint64(buf, n)
	}
	return binary.BigEndian.AppendUint32(buf, crc32.ChecksumIEEE(buf))
}

// Chart is the counts of a range in steps of equal length.
type Chart struct {
	From time.Time // the begin of the first step
	Step time.Duration
	// Values are those of each series; nil where nothing was counted, because the
	// gateway did not run.
	Values [][]*uint64
}

// Read returns the counts of the last minutes up to now, in steps of some minutes
// that begin at multiples of the step. The last step is the one under way.
func (r *Ring) Read(now time.Time, lastIndex, step int) Chart {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := (now.Unix()/60/int64(step) + 1) * int64(step)
	n := lastIndex / step
	start := end - int64(n*step)
	chart := Chart{From: time.Unix(start*60, 0).UTC(), Step: time.Duration(step) * time.Minute, Values: make([][]*uint64, len(r.series))}
	for s := range r.series {
		chart.Values[s] = make([]*uint64, n)
		for i := range n {
			for offset := start + int64(i*step); offset < start+int64((i+1)*step); offset++ {
				m := &r.minutes[slotOf(offset)]
				if m.offset != offset {
					continue
				}
				if chart.Values[s][i] == nil {
					chart.Values[s][i] = new(uint64)
				}
				*chart.Values[s][i] = r.series[s].join(*chart.Values[s][i], m.counts[s])
			}
		}
	}
	return chart
}

// Series lists what the ring counts.
func (r *Ring) Series() []Series { return r.series }

// sampleEvery is the interval at which the counters are read.
const sampleEvery = 5 * time.Second

// Sampler reads counters and adds their growth to a ring.
type Sampler struct {
	ring *Ring
	// read returns the counters of each series since the start of the program, and the
	// present value of a series with Max.
	read        func() []uint64
	lastNumbers []uint64
}

// NewSampler returns a sampler of counters that begin at zero.
func NewSampler(ring *Ring, read func() []uint64) *Sampler {
	return &Sampler{ring: ring, read: read, lastNumbers: make([]uint64, len(ring.series))}
}

// Sample adds what was counted since the last time.
func (s *Sampler) Sample(now time.Time) {
	counts := s.read()
	growth := make([]uint64, len(counts))
	for i, n := range counts {
		switch {
		case s.ring.series[i].Max:
			growth[i] = n
		case n >= s.lastNumbers[i]: // else it was taken back
			growth[i] = n - s.lastNumbers[i]
		}
	}
	copy(s.lastNumbers, counts)
	s.ring.Add(now, growth)
}

// Run samples until the context ends, and once more then.
func (s *Sampler) Run(ctx context.Context) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		s.Sample(time.Now())
		select {
		case <-ctx.Done():
			s.Sample(time.Now())
			return
		case <-tick.C:
		}
	}
}
