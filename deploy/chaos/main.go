// Command chaos shows what the gateway promises: under load, with gateways, back
// ends, a carrier and an endpoint failing at random, nothing that it acknowledged is
// lost, undone or invented.
//
// It runs the built program beside back ends of its own, an SMSC and an endpoint,
// sends traffic over every way in, remembers every
// acknowledgement, and has faults strike. Then it waits until the gateways are
// quiet, compares what it sent with what there is, and prints the table of
// docs/reliability.md. The faults follow from a seed, which it prints.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// settings are those of a run.
type settings struct {
	binary   string
	seed     uint64
	duration time.Duration
	faults   int
	backends string
	only     *regexp.Regexp
	rate     float64
	frames   float64
	hold     time.Duration
	settle   time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.binary, "binary", "bin/penstock", "the program to run")
	flag.Uint64Var(&s.seed, "seed", uint64(time.Now().UnixNano()%1_000_000), "what the faults follow from")
	flag.DurationVar(&s.duration, "duration", 15*time.Minute, "length of the load over all back ends")
	flag.IntVar(&s.faults, "faults", 300, "how many faults strike, over all back ends")
	flag.StringVar(&s.backends, "backends", "all", "sqlite, postgres, sentinel, cluster or all")
	flag.Func("only", "a regular expression: only faults whose name matches strike", func(text string) (err error) {
		s.only, err = regexp.Compile(text)
		return err
	})
	flag.Float64Var(&s.frames, "frames", 900, "frames a second that are offered")
	flag.Float64Var(&s.rate, "rate", 100, "other items a second that are offered")
	flag.DurationVar(&s.hold, "hold", 3*time.Second, "the most that a fault lasts")
	flag.DurationVar(&s.settle, "settle", 10*time.Minute, "how long to wait for what is acknowledged, after the load")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx, s)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run runs on every back end that is asked for and reports whether all is well.
func run(ctx context.Context, o settings) (ok bool, err error) {
	kinds := backendKinds()
	if o.backends != "all" {
		kinds = slices.DeleteFunc(kinds, func(k backendKind) bool { return k.name != o.backends })
	}
	if len(kinds) == 0 {
		return false, fmt.Errorf("unknown back ends %q: expected sqlite, postgres, sentinel, cluster or all", o.backends)
	}
	if o.binary, err = filepath.Abs(o.binary); err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "penstock-chaos-")
	if err != nil {
		return false, err
	}
	if err := os.Chmod(dir, 0o711); err != nil { // PostgreSQL runs as another user
		return false, err
	}
	fmt.Printf("chaos: -seed %d -duration %v -faults %d -backends %s -frames %v -rate %v -hold %v, data in %s\n", o.seed, o.duration, o.faults, o.backends, o.frames, o.rate, o.hold, dir)
	ok, shares := true, 0
	for _, k := range kinds {
		shares += k.share
	}
	for i, k := range kinds {
		part := o
		part.duration, part.faults = o.duration*time.Duration(k.share)/time.Duration(shares), o.faults*k.share/shares
		good, err := runOn(ctx, k, filepath.Join(dir, k.name), part, rand.New(rand.NewPCG(o.seed, uint64(i))))
		if err != nil {
			return false, fmt.Errorf("on %s: %w (data and logs are kept in %s)", k.name, err, dir)
		}
		ok = ok && good
	}
	if !ok {
		fmt.Printf("\nFAILED; repeat it with -seed %d; data and logs are kept in %s\n", o.seed, dir)
		return false, nil
	}
	return true, os.RemoveAll(dir)
}

// runOn runs on one kind of back ends.
func runOn(ctx context.Context, kind backendKind, dir string, o settings, random *rand.Rand) (ok bool, err error) {
	if err := os.Mkdir(dir, 0o711); err != nil {
		return false, err
	}
	s, err := newSite(ctx, kind, dir, o)
	defer s.stop()
	if err != nil {
		return false, err
	}
	fmt.Printf("\non %s, gateways: %d\n", kind.name, len(s.gateways))
	ended := make(chan struct{})
	go func() { defer close(ended); s.runLoad(ctx) }()
	struck, err := s.breakThings(ctx, random)
	close(s.done)
	<-ended
	if err != nil {
		return false, err
	}
	verdicts, took, err := s.settle(ctx)
	if err != nil {
		return false, err
	}
	s.verifyLedger(ctx)
	r := report{site: s, struck: struck, verdicts: verdicts, settled: took}
	r.print(os.Stdout)
	return r.ok(), nil
}
