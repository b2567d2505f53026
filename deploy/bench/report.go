package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// report is what a run found; of each kind one per round.
type report struct {
	settings settings
	bare     []outcome
	frames   []frameRound
	ruled    pairRounds
	scripted pairRounds

	telegraf, embedded []frameRound
	noTelegraf         string // why there is none
	telegrafLost       int64
	readingsOnly       readingsOnlyRounds
	readingBytes       float64 // of the embedded store, on disk

	memory   int64
	bareGets []outcome
	relayed  []relayRound

	kannel          []outcome
	noKannel        string // why there is none
	embeddedRelayed []relayRound

	again           int64
	reconciliations []reconciliation
	lists           *lists
	overloaded      *overloaded
	worst           []*worst
	idle            *idleResult
	sends           []sendRound
}

// reconciliation is a reconciliation: sent = stored + refused.
type reconciliation struct {
	what                  string
	sent, stored, refused int64
}

func (b reconciliation) balanced() bool { return b.sent == b.stored+b.refused }

func (r *report) reconcile(what string, sent, stored, refused int64) {
	r.reconciliations = append(r.reconciliations, reconciliation{what, sent, stored, refused})
}

// What a run is meant to show, as ratios to the floors.
const (
	aimStored       = 0.35
	aimRelayed      = 0.35
	aimLoadedMemory = 200 // MiB
)

// figure is a rate per second and its ratio to the floor of the same round:
// the medians of the rounds, each for itself.
type figure struct {
	name        string
	rate, ratio float64
	aim         float64 // of the ratio; 0 when there is none
}

func (r *report) figures() []figure {
	return []figure{
		r.figure("frames accepted", 0, frameRound.rate),
		r.figure("frames stored during the load", 0, func(f frameRound) float64 { return float64(f.storedInLoad) / f.took.Seconds() }),
		r.figure("frames accepted and stored", aimStored, frameRound.storedRate),
	}
}

func (r *report) figure(name string, aim float64, rate func(frameRound) float64) figure {
	return figure{name: name, rate: median(r.frames, rate), ratio: ratios(r.frames, rate, r.bare, outcome.rate), aim: aim}
}

func (r *report) relayFigure() figure {
	return figure{
		name: "messages relayed to the sink", aim: aimRelayed,
		rate: median(r.relayed, relayRound.rate), ratio: ratios(r.relayed, relayRound.rate, r.bareGets, outcome.rate),
	}
}

func same(v float64) float64 { return v }

// each applies a function to each element.
func each[T, U any](rounds []T, of func(T) U) []U {
	out := make([]U, len(rounds))
	for i, r := range rounds {
		out[i] = of(r)
	}
	return out
}

// median is the middle of what a function makes of each; of an even number the
// lower of the two, of none 0.
func median[T any](all []T, of func(T) float64) float64 {
	values := make([]float64, len(all))
	for i, v := range all {
		values[i] = of(v)
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}

func (r *report) print(out io.Writer) {
	backends := "real PostgreSQL, Redis and InfluxDB"
	if r.settings.embedded {
		backends = "embedded back ends"
	}
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
	say("machine: %s\nload: %d connections, %d devices, %d rounds of %v, %s; everything on this machine\n\n",
		machine(), r.settings.conns, r.settings.devices, r.settings.rounds, r.settings.seconds, backends)
	if len(r.frames)+len(r.relayed) > 0 {
		r.printLoads(table(out))
	}
	r.printOverload(table(out))
	r.printWorst(table(out))
	r.printCPU(say)
	r.printRest(say)
	if r.lists != nil {
		r.lists.print(say, table(out))
	}
}

// table returns what writes a row, and nil at the end.
func table(out io.Writer) func(cells ...any) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	return func(cells ...any) {
		if cells == nil {
			_ = w.Flush()
			return
		}
		for _, c := range cells {
			_, _ = fmt.Fprintf(w, "%v\t", c)
		}
		_, _ = fmt.Fprintln(w)
	}
}

// printLoads prints what was sent and stored; messages if any were.
func (r *report) printLoads(row func(cells ...any)) {
	defer row()
	row("medians", "per second", "ratio", "aim", "µs of CPU", "p50", "p99")
	if len(r.frames) > 0 {
		r.printFrames(row)
	}
	if len(r.relayed) == 0 {
		return
	}
	row("bare client, GETs", rate(median(r.bareGets, outcome.rate)), "1.00", "", "", "", "")
	row("messages accepted", rate(median(r.relayed, relayRound.acceptedRate)), "", "", "", "", "")
	relay := r.relayFigure()
	row(relay.name, rate(relay.rate), ratio(relay.ratio), aim(relay.aim), number(median(r.relayed, relayRound.micros)), "", "")
	r.printRelayPeers(row)
}

func (r *report) printFrames(row func(cells ...any)) {
	row("bare handler, 204", rate(median(r.bare, outcome.rate)), "1.00", "", number(median(r.bare, outcome.micros)), took(r.bare, p50), took(r.bare, p99))
	accepted := each(r.frames, frameRound.load)
	for i, f := range r.figures() {
		if i == 0 {
			row(f.name, rate(f.rate), ratio(f.ratio), aim(f.aim), number(median(accepted, outcome.micros)), took(accepted, p50), took(accepted, p99))
			continue
		}
		row(f.name, rate(f.rate), ratio(f.ratio), aim(f.aim), "", "", "")
	}
	r.printFramePeers(row)
}

// printRest prints the lines below the table.
func (r *report) printRest(say func(format string, args ...any)) {
	for _, b := range r.reconciliations {
		say("reconciliation of %s: sent %d = stored %d + refused %d: %v\n", b.what, b.sent, b.stored, b.refused, b.balanced())
	}
	if len(r.relayed) > 0 {
		say("messages that reached the sink more than once: %d\n", r.again)
	}
	r.printRuled(say)
	r.printScripted(say)
	r.printSends(say)
	r.printIdle(say)
}

func rate(v float64) string { return fmt.Sprintf("%.0f", v) }

func ratio(v float64) string { return fmt.Sprintf("%.2f", v) }

func aim(v float64) string {
	if v == 0 {
		return ""
	}
	return "≥ " + ratio(v)
}

func number(v float64) string { return fmt.Sprintf("%.1f", v) }

func p50(o outcome) float64 { return float64(o.p50) }
func p99(o outcome) float64 { return float64(o.p99) }

func took(all []outcome, of func(outcome) float64) time.Duration {
	return time.Duration(median(all, of)).Round(10 * time.Microsecond)
}

// verdict fails a run that lost something. A ratio under its aim fails nothing:
// timings on shared cores are noisy, losses are not.
func (r *report) verdict() error {
	for _, b := range r.reconciliations {
		if !b.balanced() {
			return fmt.Errorf("%s: sent %d, stored %d, refused %d", b.what, b.sent, b.stored, b.refused)
		}
	}
	return nil
}

// printCPU prints the CPU time of each process per frame and per message.
func (r *report) printCPU(say func(format string, args ...any)) {
	if len(r.frames) > 0 {
		say("\nµs of CPU per frame: %s; cores in use during the load %.0f %%\n",
			cpuEach(each(r.frames, frameRound.load), "the load's client"), 100*median(r.frames, func(f frameRound) float64 { return f.busy }))
		r.printFrameCPU(say)
		say("the gateway's peak memory under frames: %d MiB, aim ≤ %d\n", r.memory>>20, aimLoadedMemory)
	}
	if len(r.relayed) > 0 {
		say("\nµs of CPU per message relayed: %s\n", cpuEach(each(r.relayed, relayRound.load), "client and sink"))
	}
	if len(r.sends) > 0 {
		say("\nµs of CPU per message sent: %s\n",
			cpuEach(each(r.sends, func(s sendRound) outcome { return s.load }), "client and SMSC"))
	}
}

// cpuEach is the CPU time of the servers and the client for each.
func cpuEach(all []outcome, client string) string {
	per := func(cpu func(outcome) time.Duration) string {
		return number(median(all, func(o outcome) float64 { return outcome{count: o.count, cpu: cpu(o)}.micros() }))
	}
	return fmt.Sprintf("gateway %s, PostgreSQL %s, Redis %s, InfluxDB %s, %s %s",
		per(func(o outcome) time.Duration { return o.cpu }), per(func(o outcome) time.Duration { return o.beside.postgres }),
		per(func(o outcome) time.Duration { return o.beside.redis }), per(func(o outcome) time.Duration { return o.beside.influx }),
		client, per(func(o outcome) time.Duration { return o.beside.client }))
}
