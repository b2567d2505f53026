package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// The processes whose CPU time is measured: the program, its stores, and this one.
const (
	cpuProgram = iota
	cpuPostgres
	cpuRedis
	cpuInflux
	cpuClient
	processes // how many
)

// usage is CPU time by process.
type usage [processes]time.Duration

// outcome is the result of a round.
type outcome struct {
	count, refused, broken int64           // broken: the connection ended without an answer
	accepted               time.Duration   // until the last one was accepted
	done                   time.Duration   // until the last one was stored, relayed or submitted
	latencies              []time.Duration // of those accepted, sorted
	cpu                    usage
}

func (o outcome) acceptedRate() float64 { return float64(o.count) / o.accepted.Seconds() }
func (o outcome) doneRate() float64     { return float64(o.count) / o.done.Seconds() }

// micros is the CPU time of a process for each item, in microseconds.
func (o outcome) micros(process int) float64 {
	return float64(o.cpu[process].Microseconds()) / float64(max(o.count, 1))
}

func (o outcome) quantile(q float64) time.Duration { return quantile(o.latencies, q) }

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))]
}

// subject is something that is measured in turns with others. cpu returns the CPU time so
// far, without that of this process.
type subject struct {
	name   string
	cpu    func() usage
	round  func(context.Context) (outcome, error)
	rounds []outcome
}

// inTurns measures each subject once a round, so that whatever else the machine does falls
// on all of them. The first round warms up: it imports devices and grows memory.
func (b *bench) inTurns(ctx context.Context, subjects ...*subject) error {
	for n := range b.rounds + 1 {
		for _, s := range subjects {
			o, err := s.measure(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if n > 0 {
				s.rounds = append(s.rounds, o)
			}
		}
	}
	return nil
}

func (s *subject) measure(ctx context.Context) (outcome, error) {
	started := s.cpu()
	client, start := ownCPU(), time.Now() // without the time that reading the others takes
	o, err := s.round(ctx)
	o.done, client = time.Since(start), ownCPU()-client
	o.cpu = s.cpu()
	for process := range o.cpu {
		o.cpu[process] -= started[process]
	}
	o.cpu[cpuClient] = client
	if err == nil && o.refused+o.broken > 0 {
		err = fmt.Errorf("of %d, %d were refused and %d not answered", o.count+o.refused+o.broken, o.refused, o.broken)
	}
	return o, err
}

// median is that of a figure of the rounds.
func (s *subject) median(figure func(outcome) float64) float64 {
	values := make([]float64, len(s.rounds))
	for i, o := range s.rounds {
		values[i] = figure(o)
	}
	return median(values)
}

// beside is the median of the ratios of a figure to that of another subject in the same
// round.
func (s *subject) ratio(otherSubject *subject, figure func(outcome) float64) float64 {
	ratios := make([]float64, len(s.rounds))
	for i, o := range s.rounds {
		ratios[i] = figure(o) / figure(otherSubject.rounds[i])
	}
	return median(ratios)
}

func (s *subject) quantile(q float64) time.Duration {
	return time.Duration(s.median(func(o outcome) float64 { return float64(o.quantile(q)) }))
}

// median is the middle of some values; of an even number the lower of the two, of none 0.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
