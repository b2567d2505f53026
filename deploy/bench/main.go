// Command bench measures the built program with a real PostgreSQL, Redis and InfluxDB under
// load from this process over loopback, and prints the medians of the rounds. Frames are
// measured in turns with Telegraf, messages in turns with Kannel.
//
// The run fails if a part fails, or if the number of frames or messages sent is not the number
// stored plus the number refused. A missed aim does not fail the run.
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

// settings are the flags of a run.
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

// bench is the measurement of a part, with its settings and processes.
type bench struct {
	settings
	servers.Run
	w        io.Writer
	gateways int     // started so far
	errs     []error // failed reconciliations
}

// part is a part of the benchmark, which -only selects.
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
		return nil, fmt.Errorf("-only must be one of %s, not %q", strings.Join(names, ", "), name)
	}
	return chosen, nil
}

func main() {
	var s settings
	flag.StringVar(&s.binary, "binary", "bin/penstock", "the program to measure")
	flag.DurationVar(&s.seconds, "time", 4*time.Second, "length of each load")
	flag.IntVar(&s.rounds, "rounds", 5, "rounds that are measured after a round that warms up")
	flag.IntVar(&s.conns, "connections", 64, "connections to the gateway")
	flag.IntVar(&s.devices, "devices", 1000, "devices that send")
	flag.IntVar(&s.messages, "messages", 50_000, "inbound messages relayed, over all rounds")
	flag.IntVar(&s.sims, "sims", 1_000_000, "SIMs of the account whose lists are read, a power of ten from 100,000")
	flag.IntVar(&s.sends, "sends", 150_000, "messages sent, over all rounds")
	flag.BoolVar(&s.embedded, "embedded", false, "measure the embedded back ends instead of PostgreSQL, Redis and InfluxDB")
	only := flag.String("only", "", "measure only the part with this name; the error for an unknown name lists all parts")
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

// measure runs parts one after the other, each in a directory of its own. It measures the
// remaining parts even if a part fails.
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
	return errors.Join(append(b.errs, err)...)
}
