// Command bench measures the gateway as its users meet it: the built program,
// a real PostgreSQL, Redis and InfluxDB beside it, load from a client of its own
// on loopback. Other programs that do the same, Telegraf and Kannel, are measured in
// turns with it, and it prints the medians of the rounds. Pages of SIMs have limits in
// time instead.
//
// The run fails if the number sent is not the number stored and refused.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// settings are the sizes of a run.
type settings struct {
	binary   string
	seconds  time.Duration
	rounds   int
	conns    int
	devices  int
	messages int
	sims     int
	sends    int
	embedded bool
}

// bench is the measurement of a part: its settings, and the processes that it starts.
type bench struct {
	settings
	servers.Run
	w        io.Writer
	gateways int     // started so far
	wrong    []error // what does not add up
}

// part is something that is measured.
type part struct {
	name string
	run  func(context.Context, *bench) error
}

func parts() []part {
	return []part{
		{"frames", frames}, {"overload", overload}, {"rules", rules}, {"scripts", scripts},
		{"relayed", relayed}, {"idle", idle}, {"sims", sims}, {"sends", sends}, {"console", console},
	}
}

// selected returns the part with a name, or all parts if the name is empty.
func selected(name string) ([]part, error) {
	chosen := slices.DeleteFunc(parts(), func(p part) bool { return name != "" && p.name != name })
	if len(chosen) == 0 {
		var names []string
		for _, p := range parts() {
			names = append(names, p.name)
		}
		return nil, fmt.Errorf("-only %q is unknown: want one of %s", name, strings.Join(names, ", "))
	}
	return chosen, nil
}

func main() {
	var s settings
	flag.StringVar(&s.binary, "binary", "bin/penstock", "the program to measure")
	flag.DurationVar(&s.seconds, "time", 4*time.Second, "length of each load")
	flag.IntVar(&s.rounds, "rounds", 5, "how often everything is measured, in turns, after a round that warms up")
	flag.IntVar(&s.conns, "connections", 64, "connections of the client")
	flag.IntVar(&s.devices, "devices", 1000, "devices that send")
	flag.IntVar(&s.messages, "messages", 50_000, "inbound messages relayed, over all rounds")
	flag.IntVar(&s.sims, "sims", 1_000_000, "SIMs of the account whose lists are read, a power of ten from 100,000")
	flag.IntVar(&s.sends, "sends", 150_000, "messages sent, over all rounds")
	flag.BoolVar(&s.embedded, "embedded", false, "measure the embedded back ends instead of PostgreSQL, Redis and InfluxDB")
	only := flag.String("only", "", "measure only one part; an unknown name has the error list all parts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	chosen, err := selected(*only)
	if err == nil {
		err = measure(ctx, os.Stdout, s, chosen)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measure runs parts one after the other, each in a directory of its own. One that fails
// does not keep the others from being measured.
func measure(ctx context.Context, w io.Writer, s settings, chosen []part) error {
	backends := "real PostgreSQL, Redis and InfluxDB"
	if s.embedded {
		backends = "embedded back ends"
	}
	cpuinfo, _ := os.ReadFile("/proc/cpuinfo")
	fmt.Fprintf(w, "machine: %d cores, %s, %s/%s, %s\nload: %d connections, %d devices, %d rounds of %v, %s; everything on this machine\n",
		runtime.NumCPU(), lineValue(string(cpuinfo), "model name"), runtime.GOOS, runtime.GOARCH, runtime.Version(), s.conns, s.devices, s.rounds, s.seconds, backends)
	var errs []error
	for _, p := range chosen {
		if err := p.measure(ctx, w, s); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	return errors.Join(errs...)
}

func (p part) measure(ctx context.Context, w io.Writer, s settings) error {
	dir, err := os.MkdirTemp("", "penstock-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b := &bench{settings: s, Run: servers.Run{Dir: dir}, w: w}
	defer b.Stop()
	err = p.run(ctx, b)
	return errors.Join(append(b.wrong, err)...)
}
