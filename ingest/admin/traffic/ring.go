// Package traffic stores the counts of each minute of the last day in a file of fixed size, so
// that an installation without a metrics server has charts of its traffic, including after a
// restart.
//
// Only charts depend on the counts. A damaged file is replaced by a new one, and a gateway that
// cannot write the file continues in memory only.
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

// Series is a series of counts.
type Series struct {
	Name string
	// Max means that a step has the largest count of its minutes instead of the sum, for example
	// for the length of a queue.
	Max bool
}

// headSize is the size in bytes of the file's head: magic, and a hash of the names of the series. A
// program with other series starts a new file.
const headSize = 40

const magic = "PENSTKT1"

// Ring stores the counts. It is safe for concurrent use.
type Ring struct {
	series []Series
	log    *slog.Logger

	mu      sync.Mutex
	file    *os.File // nil if it cannot be opened
	broken  bool     // the last write failed and was logged
	minutes [Minutes]minute
}

// minute has the counts of one minute.
type minute struct {
	number int64 // minutes since 1970; 0 for a minute without counts
	counts []uint64
}

// Open reads the ring from a file, or creates the file. Open logs the number of damaged records and
// omits them. If the file cannot be opened, Open logs the error, and the ring is in memory only.
func Open(path string, series []Series, log *slog.Logger) *Ring {
	r := &Ring{series: series, log: log}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		log.Warn("traffic of the last day is stored in memory only: cannot open file", "path", path, "error", err)
		return r
	}
	r.file = file
	if err := r.read(); err != nil {
		log.Warn("traffic charts begin anew: invalid file", "path", path, "reason", err)
		r.minutes = [Minutes]minute{}
		if err := r.format(); err != nil {
			r.logFailure(err)
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

// format writes an empty ring to the file.
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

// read reads the ring from the file. It omits records with a wrong checksum, which a power failure
// may cause. It returns an error for a file with other series.
func (r *Ring) read() error {
	content, err := io.ReadAll(io.LimitReader(r.file, int64(headSize+Minutes*r.recordSize()+1)))
	switch {
	case err != nil:
		return err
	case len(content) == 0:
		return r.format() // a new file
	case len(content) != headSize+Minutes*r.recordSize():
		return fmt.Errorf("file size is %d bytes, want %d", len(content), headSize+Minutes*r.recordSize())
	case !bytes.Equal(content[:headSize], r.head()):
		return errors.New("file has other series or is damaged")
	}
	damaged := 0
	for slot := range r.minutes {
		record := content[headSize+slot*r.recordSize():][:r.recordSize()]
		m, ok := r.parse(record)
		if !ok || m.number != 0 && slotOf(m.number) != slot {
			damaged++
			continue
		}
		r.minutes[slot] = m
	}
	if damaged > 0 {
		r.log.Warn("minutes are missing in the traffic charts: damaged records", "minutes", damaged)
	}
	return nil
}

// parse parses a record. A record of zeros is a minute without counts.
func (r *Ring) parse(record []byte) (minute, bool) {
	body := record[:len(record)-4]
	if sum := binary.BigEndian.Uint32(record[len(body):]); sum != crc32.ChecksumIEEE(body) {
		return minute{}, len(bytes.Trim(record, "\x00")) == 0
	}
	m := minute{number: int64(binary.BigEndian.Uint64(body)), counts: make([]uint64, len(r.series))} //nolint:gosec // minutes since 1970
	for i := range m.counts {
		m.counts[i] = binary.BigEndian.Uint64(body[8+8*i:])
	}
	return m, m.number > 0
}

func slotOf(number int64) int { return int(number % Minutes) }

// Add adds counts to the minute of now. A series with Max keeps the larger count.
func (r *Ring) Add(now time.Time, counts []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	number := now.Unix() / 60
	if number <= 0 {
		return
	}
	m := &r.minutes[slotOf(number)]
	if m.number != number {
		*m = minute{number: number, counts: make([]uint64, len(r.series))}
	}
	for i, n := range counts {
		m.counts[i] = r.series[i].join(m.counts[i], n)
	}
	if r.file == nil {
		return
	}
	if _, err := r.file.WriteAt(m.record(), int64(headSize+slotOf(number)*r.recordSize())); err != nil {
		r.logFailure(err)
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

// logFailure logs the first error of the file after a successful write.
func (r *Ring) logFailure(err error) {
	if !r.broken {
		r.log.Warn("cannot write traffic of the last day: charts will have a gap after a restart", "path", r.file.Name(), "error", err)
	}
	r.broken = true
}

func (m *minute) record() []byte {
	buf := binary.BigEndian.AppendUint64(nil, uint64(m.number)) //nolint:gosec // minutes since 1970
	for _, n := range m.counts {
		buf = binary.BigEndian.AppendUint64(buf, n)
	}
	return binary.BigEndian.AppendUint32(buf, crc32.ChecksumIEEE(buf))
}

// Chart has the counts of a range in steps of equal length.
type Chart struct {
	From time.Time // the start of the first step
	// Values has the counts of each series by step; nil for a step without counts.
	Values [][]*uint64
}

// Read returns the counts of the last minutes in steps of step minutes. Steps begin at multiples of
// step. The last step contains now.
func (r *Ring) Read(now time.Time, minutes, step int) Chart {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := (now.Unix()/60/int64(step) + 1) * int64(step)
	n := minutes / step
	start := end - int64(n*step)
	chart := Chart{From: time.Unix(start*60, 0).UTC(), Values: make([][]*uint64, len(r.series))}
	for s := range r.series {
		chart.Values[s] = make([]*uint64, n)
		for i := range n {
			for number := start + int64(i*step); number < start+int64((i+1)*step); number++ {
				m := &r.minutes[slotOf(number)]
				if m.number != number {
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

// Series lists the series.
func (r *Ring) Series() []Series { return r.series }

// sampleInterval is the interval at which Run reads the counters.
const sampleInterval = 5 * time.Second

// Sampler reads counters and adds their growth to a ring.
type Sampler struct {
	ring *Ring
	// read returns the counter of each series since the start of the program, or the current
	// value of a series with Max.
	read         func() []uint64
	lastCounters []uint64
}

// NewSampler returns a sampler of counters that begin at zero.
func NewSampler(ring *Ring, read func() []uint64) *Sampler {
	return &Sampler{ring: ring, read: read, lastCounters: make([]uint64, len(ring.series))}
}

// Sample adds the growth of the counters since the last sample.
func (s *Sampler) Sample(now time.Time) {
	counters := s.read()
	growth := make([]uint64, len(counters))
	for i, n := range counters {
		switch {
		case s.ring.series[i].Max:
			growth[i] = n
		case n >= s.lastCounters[i]: // a counter may decrease when a count is corrected
			growth[i] = n - s.lastCounters[i]
		}
	}
	copy(s.lastCounters, counters)
	s.ring.Add(now, growth)
}

// Run samples every five seconds until ctx is done, and once more at the end.
func (s *Sampler) Run(ctx context.Context) {
	tick := time.NewTicker(sampleInterval)
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
