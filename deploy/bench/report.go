package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// report is what a run found.
type report struct {
	settings      settings
	bare          outcome
	accepted      outcome
	storedInLoad  int64
	storedIn      time.Duration // until the last frame was stored
	memory        int64
	others        time.Duration // CPU of Redis and InfluxDB under frames
	client        time.Duration // CPU of the load's client
	bareGets      outcome
	relayed       outcome
	relayAccepted time.Duration
	again         int64
	books         []book
}

// book is a reconciliation: sent = stored + refused.
type book struct {
	what                  string
	sent, stored, refused int64
}

func (b book) balanced() bool { return b.sent == b.stored+b.refused }

func (r *report) reconcile(what string, sent, stored, refused int64) {
	r.books = append(r.books, book{what, sent, stored, refused})
}

// The least that a run must show, as ratios to the floors.
const (
	leastAccepted = 0.35
	leastStored   = 0.25
	leastRelayed  = 0.25
)

func (r *report) storedRate() float64 { return float64(r.accepted.count) / r.storedIn.Seconds() }

func (r *report) print(out io.Writer) {
	backends := "real Redis and InfluxDB"
	if r.settings.embedded {
		backends = "embedded back ends"
	}
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
	say("machine: %s\nload: %d connections, %d devices, %v, %s; everything on this machine\n\n",
		machine(), r.settings.conns, r.settings.devices, r.settings.seconds, backends)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(cells ...any) {
		for _, c := range cells {
			_, _ = fmt.Fprintf(w, "%v\t", c)
		}
		_, _ = fmt.Fprintln(w)
	}
	row("", "per second", "ratio", "µs of CPU", "p50", "p99")
	row("bare handler, 204", rate(r.bare.rate()), "1.00", micros(r.bare), r.bare.p50.Round(10*time.Microsecond), r.bare.p99.Round(10*time.Microsecond))
	row("frames accepted", rate(r.accepted.rate()), ratio(r.accepted.rate(), r.bare.rate()), micros(r.accepted),
		r.accepted.p50.Round(10*time.Microsecond), r.accepted.p99.Round(10*time.Microsecond))
	row("frames stored during the load", rate(float64(r.storedInLoad)/r.accepted.took.Seconds()), ratio(float64(r.storedInLoad)/r.accepted.took.Seconds(), r.bare.rate()), "", "", "")
	row("frames accepted and stored", rate(r.storedRate()), ratio(r.storedRate(), r.bare.rate()), "", "", "")
	row("bare client, GETs", rate(r.bareGets.rate()), "1.00", "", "", "")
	row("messages accepted", rate(float64(r.settings.messages)/r.relayAccepted.Seconds()), "", "", "", "")
	row("messages relayed to the sink", rate(r.relayed.rate()), ratio(r.relayed.rate(), r.bareGets.rate()), micros(r.relayed), "", "")
	_ = w.Flush()
	say("\nµs of CPU per frame: gateway %s, Redis and InfluxDB %s, the load's client %s\n",
		micros(r.accepted), micros(outcome{count: r.accepted.count, cpu: r.others}), micros(outcome{count: r.accepted.count, cpu: r.client}))
	say("the gateway's peak memory under frames: %d MiB\n", r.memory>>20)
	for _, b := range r.books {
		say("reconciliation of %s: sent %d = stored %d + refused %d: %v\n", b.what, b.sent, b.stored, b.refused, b.balanced())
	}
	say("messages that reached the sink more than once: %d\n", r.again)
}

func rate(v float64) string { return fmt.Sprintf("%.0f", v) }

func ratio(v, floor float64) string { return fmt.Sprintf("%.2f", v/floor) }

func micros(o outcome) string {
	if o.count == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", float64(o.cpu.Microseconds())/float64(o.count))
}

// verdict fails a run that lost something, and names targets that were missed:
// timings on shared cores are noisy, losses are not.
func (r *report) verdict() error {
	for _, b := range r.books {
		if !b.balanced() {
			return fmt.Errorf("%s: sent %d, stored %d, refused %d", b.what, b.sent, b.stored, b.refused)
		}
	}
	var missed []error
	for _, t := range []struct {
		name           string
		got, of, least float64
	}{
		{"accepted", r.accepted.rate(), r.bare.rate(), leastAccepted},
		{"accepted and stored", r.storedRate(), r.bare.rate(), leastStored},
		{"relayed", r.relayed.rate(), r.bareGets.rate(), leastRelayed},
	} {
		if t.got < t.least*t.of {
			missed = append(missed, fmt.Errorf("%s: ratio %.2f is under %.2f", t.name, t.got/t.of, t.least))
		}
	}
	return errors.Join(missed...)
}
