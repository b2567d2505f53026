// Command bench measures the gateway as its users meet it: the built program,
// a real PostgreSQL, Redis and InfluxDB beside it, load from a client of its own
// on loopback. Every figure is printed beside a floor measured in the same run,
// with the same client: a bare Fiber handler that answers 204, or a bare Go client
// that makes the same GETs.
// Floor and gateway are measured in turns, and the medians of the rounds are what is
// printed. Pages of SIMs have limits in time instead.
//
// It checks before it prints: the number sent is the number stored and refused, or
// the run fails.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// settings is how much is measured.
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
	only     string

	// decoder and firstDevice are those of a load, set by the part that sends it.
	decoder     string
	firstDevice int64
}

func main() {
	s := settings{decoder: "bench"}
	flag.StringVar(&s.binary, "binary", "bin/penstock", "the program to measure")
	flag.DurationVar(&s.seconds, "time", 4*time.Second, "length of each load")
	flag.IntVar(&s.rounds, "rounds", 5, "how often floor and gateway are measured, in turns")
	flag.IntVar(&s.conns, "connections", 64, "connections of the client")
	flag.IntVar(&s.devices, "devices", 1000, "devices that send")
	flag.IntVar(&s.messages, "messages", 50_000, "inbound messages relayed, over all rounds")
	flag.IntVar(&s.sims, "sims", 1_000_000, "SIMs of the account whose lists are read, a power of ten from 100,000")
	flag.IntVar(&s.sends, "sends", 150_000, "messages sent twice, over all rounds")
	flag.BoolVar(&s.embedded, "embedded", false, "measure the embedded back ends instead of PostgreSQL, Redis and InfluxDB")
	flag.StringVar(&s.only, "only", "", "measure only frames, relayed, sends, overload, sims, rules, scripts or idle")
	bare := flag.String("bare", "", "serve the bare handler on this address and do nothing else")
	flag.Parse()
	if *bare != "" {
		exit(serveBare(*bare))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(measure(ctx, s))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// part is something that is measured.
type part struct {
	name string
	run  func(context.Context, *peers, settings, *report) error
}

func parts() []part {
	return []part{
		{"frames", frames}, {"overload", overload}, {"rules", measureRules}, {"scripts", measureScripts},
		{"relayed", relayed}, {"idle", measureIdle}, {"sims", sims}, {"sends", sends},
	}
}

// measure runs everything once and prints the table.
func measure(ctx context.Context, s settings) error {
	dir, err := os.MkdirTemp("", "penstock-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p := &peers{Run: servers.Run{Dir: dir}, sink: "127.0.0.1:9"}
	defer p.Stop()
	r := report{settings: s}
	for _, part := range parts() {
		if s.only != "" && s.only != part.name {
			continue
		}
		if err := part.run(ctx, p, s, &r); err != nil {
			r.print(os.Stdout) // of the parts before
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	r.print(os.Stdout)
	return r.verdict()
}
