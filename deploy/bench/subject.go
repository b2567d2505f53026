package main

import (
	"context"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"
)

// The processes whose CPU time is measured: the program, its back ends, and this process.
const (
	cpuProgram = iota
	cpuPostgres
	cpuRedis
	cpuInflux
	cpuClient
	processes // number of processes
)

// usage is CPU time by process.
type usage [processes]time.Duration

// outcome is the result of a round.
type outcome struct {
	count, refused, broken int64           // broken requests ended without an answer
	accepted               time.Duration   // time until the last item was accepted
	done                   time.Duration   // time until the last item was stored, relayed or submitted
	latencies              []time.Duration // of accepted items, sorted
	cpu                    usage
}

func (o outcome) acceptedRate() float64 { return float64(o.count) / o.accepted.Seconds() }
func (o outcome) doneRate() float64     { return float64(o.count) / o.done.Seconds() }

func (o outcome) quantile(q float64) time.Duration {
	if len(o.latencies) == 0 {
		return 0
	}
	return o.latencies[int(q*float64(len(o.latencies)-1))]
}

// timed calls do with the numbers from 0 to count-1, one after the other, and measures each call.
func timed(count int, do func(n int) error) (o outcome, err error) {
	for n := range count {
		began := time.Now()
		if err := do(n); err != nil {
			return o, err
		}
		o.latencies = append(o.latencies, time.Since(began))
	}
	slices.Sort(o.latencies)
	o.count = int64(count)
	return o, nil
}

// subject is a program or a request that is measured in turns with others. cpu returns the CPU
// time that its processes have used so far, without this process.
type subject struct {
	name   string
	cpu    func() usage
	round  func(context.Context) (outcome, error)
	rounds []outcome
}

// inTurns measures each subject once a round, so that other load on the machine affects all of
// them. The first round, which imports devices and grows memory, is not recorded.
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
	cpuBefore := s.cpu()
	client, start := ownCPU(), time.Now() // after s.cpu, whose own CPU time is not measured
	o, err := s.round(ctx)
	o.done, client = time.Since(start), ownCPU()-client
	o.cpu = s.cpu()
	for process := range o.cpu {
		o.cpu[process] -= cpuBefore[process]
	}
	o.cpu[cpuClient] = client
	if err == nil && o.refused+o.broken > 0 {
		err = fmt.Errorf("of %d requests, %d were refused and %d not answered", o.count+o.refused+o.broken, o.refused, o.broken)
	}
	return o, err
}

// median returns the median of a figure over the rounds.
func (s *subject) median(figure func(outcome) float64) float64 {
	values := make([]float64, len(s.rounds))
	for i, o := range s.rounds {
		values[i] = figure(o)
	}
	return median(values)
}

// ratio returns the median over the rounds of the ratio of a figure to the same figure of
// otherSubject.
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

// median sorts values and returns the middle one, the lower of the two middle ones, or 0.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

// table aligns rows of cells in columns and prints them when it is flushed.
type table struct{ *tabwriter.Writer }

// table begins a table whose first row is heads.
func (b *bench) table(heads ...any) table {
	fmt.Fprintln(b.w)
	t := table{tabwriter.NewWriter(b.w, 0, 0, 2, ' ', tabwriter.AlignRight)}
	t.row(heads...)
	return t
}

func (t table) row(cells ...any) {
	for _, c := range cells {
		switch v := c.(type) {
		case float64:
			c = fmt.Sprintf("%.2f", v)
		case time.Duration:
			c = v.Round(10 * time.Microsecond)
		}
		fmt.Fprintf(t, "%v\t", c)
	}
	fmt.Fprintln(t)
}

// loads prints a row for each subject, with the ratios of its rates to the rates of the first
// subject. Done means stored, relayed or submitted.
func (b *bench) loads(title string, subjects []*subject) {
	t := b.table(title, "accepted/s", "ratio", "done/s", "ratio", "µs of CPU", "PostgreSQL", "Redis", "InfluxDB", "client", "p50", "p99")
	defer t.Flush()
	for _, s := range subjects {
		reference := subjects[0]
		cells := []any{s.name, rounded(s.median(outcome.acceptedRate)), s.ratio(reference, outcome.acceptedRate), rounded(s.median(outcome.doneRate)), s.ratio(reference, outcome.doneRate)}
		for process := range processes {
			micros := s.median(func(o outcome) float64 { return float64(o.cpu[process].Microseconds()) / float64(max(o.count, 1)) })
			cells = append(cells, fmt.Sprintf("%.1f", micros))
		}
		t.row(append(cells, s.quantile(0.5), s.quantile(0.99))...)
	}
}

// compare prints the ratio of a figure of s to the same figure of otherSubject, and the aim. It
// prints nothing if either subject is nil, which means that it was not measured.
func (t table) compare(s, otherSubject *subject, label string, figure func(outcome) float64, aim string) {
	if s != nil && otherSubject != nil {
		t.row(label+": "+s.name+" / "+otherSubject.name, s.ratio(otherSubject, figure), aim)
	}
}

// reconcile prints whether sent is the sum of stored and refused. If it is not, the run fails at
// the end. A missed aim does not fail the run because timings on shared cores are noisy.
func (b *bench) reconcile(label string, sent, stored, refused int64) {
	text := fmt.Sprintf("reconciliation of %s: sent %d = stored %d + refused %d", label, sent, stored, refused)
	fmt.Fprintf(b.w, "%s: %v\n", text, sent == stored+refused)
	if sent != stored+refused {
		b.errs = append(b.errs, fmt.Errorf("%s does not add up", text))
	}
}

func rounded(v float64) string { return fmt.Sprintf("%.0f", v) }
