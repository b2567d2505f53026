package traffic

import (
	"context"
	"time"
)

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
