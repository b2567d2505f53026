// Command bench measures the gateway as its users meet it: the built program,
// a real PostgreSQL, Redis and InfluxDB beside it, load from a client of its own
// on loopback. Every figure is printed beside a floor measured in the same run,
// with the same client: a bare Fiber handler that answers 204, a bare Go client
// that makes the same GETs, a bare handler that makes an HGETALL, and InfluxDB itself.
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
	fleet    int
	readings int
	sims     int
	sends    int
	kept     int
	embedded bool
	only     string

	soak    time.Duration
	applied int

	// decoder, firstDevice and accounts are those of a load, set by the part that sends it.
	decoder     string
	firstDevice int64
	accounts    int
}

func main() {
	s := settings{decoder: "bench"}
	flag.StringVar(&s.binary, "binary", "bin/penstock", "the program to measure")
	flag.DurationVar(&s.seconds, "time", 4*time.Second, "length of each load")
	flag.IntVar(&s.rounds, "rounds", 5, "how often floor and gateway are measured, in turns")
	flag.IntVar(&s.conns, "connections", 64, "connections of the client")
	flag.IntVar(&s.devices, "devices", 1000, "devices that send")
	flag.IntVar(&s.messages, "messages", 50_000, "inbound messages relayed, over all rounds")
	flag.IntVar(&s.fleet, "fleet", 10_000, "devices of the account that is read")
	flag.IntVar(&s.readings, "readings", 10_000_000, "readings of that account; 0 leaves it out")
	flag.IntVar(&s.sims, "sims", 1_000_000, "SIMs of the account whose lists are read, a power of ten from 100,000; 0 leaves it out")
	flag.IntVar(&s.sends, "sends", 150_000, "messages sent twice, over all rounds")
	flag.IntVar(&s.kept, "kept", 0, "messages that a gateway with embedded back ends keeps, a multiple of 10,000, such as 1000000; 0 leaves it out")
	flag.DurationVar(&s.soak, "soak", 10*time.Minute, "how long -only soak loads a gateway")
	flag.IntVar(&s.applied, "applied", 1_000_000, "SIMs of the inventory that -only applied gives to a gateway")
	flag.BoolVar(&s.embedded, "embedded", false, "measure the embedded back ends instead of PostgreSQL, Redis and InfluxDB")
	flag.StringVar(&s.only, "only", "", "measure only frames, overload, rules, scripts, relayed, hanging, latency, idle, readings, sims, sends or kept, or what takes long: growth, soak, applied")
	bare := flag.String("bare", "", "serve the bare handler on this address and do nothing else")
	redis := flag.String("redis", "", "with -bare: the handler makes an HGETALL of this Redis")
	flag.Parse()
	switch {
	case *bare != "" && *redis != "":
		exit(serveHGETALL(*bare, *redis))
	case *bare != "":
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

// part is something that is measured. A long one runs only where it is named.
type part struct {
	name string
	run  func(context.Context, *peers, settings, *report) error
	long bool
}

func parts() []part {
	return []part{
		{name: "frames", run: frames}, {name: "overload", run: overload}, {name: "rules", run: measureRules}, {name: "scripts", run: measureScripts},
		{name: "relayed", run: relayed}, {name: "hanging", run: hanging}, {name: "latency", run: latency}, {name: "idle", run: measureIdle},
		{name: "readings", run: readings}, {name: "sims", run: sims}, {name: "sends", run: sends}, {name: "kept", run: measureKept},
		{name: "growth", run: measureGrowth, long: true}, {name: "soak", run: measureSoak, long: true}, {name: "applied", run: measureApplied, long: true},
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
		if s.only != part.name && (s.only != "" || part.long) {
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
