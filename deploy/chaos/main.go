// Command chaos checks the promises of docs/reliability.md: under load, while gateways, back
// ends, an SMSC and an endpoint fail at random, no acknowledged item is lost or undone, and no
// item is found that was never sent.
//
// It runs the built program with back ends, an SMSC and an endpoint of its own, sends numbered
// items over the gateway's APIs, records every acknowledgement, and lets faults strike. Then it
// waits until the gateways are idle, compares the sent items with the stored and delivered ones,
// and prints the result. The printed seed determines the faults.
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

// settings are the flags of a run.
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
	flag.Uint64Var(&s.seed, "seed", uint64(time.Now().UnixNano()%1_000_000), "seed of the order, length and targets of the faults")
	flag.DurationVar(&s.duration, "duration", 15*time.Minute, "duration of the load, over all kinds of back ends")
	flag.IntVar(&s.faults, "faults", 300, "number of faults, over all kinds of back ends")
	flag.StringVar(&s.backends, "backends", "all", "sqlite, postgres, sentinel, cluster or all")
	flag.Func("only", "a regular expression: only faults whose name matches strike", func(text string) (err error) {
		s.only, err = regexp.Compile(text)
		return err
	})
	flag.Float64Var(&s.frames, "frames", 900, "frames sent a second")
	flag.Float64Var(&s.rate, "rate", 100, "other items sent a second")
	flag.DurationVar(&s.hold, "hold", 3*time.Second, "maximum of the random part of a fault's length, which is added to 300 ms")
	flag.DurationVar(&s.settle, "settle", 10*time.Minute, "how long to wait for acknowledged items after the load")
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

// run runs on every selected kind of back ends and reports whether no promise was broken.
func run(ctx context.Context, settings settings) (ok bool, err error) {
	kinds := backendKinds()
	if settings.backends != "all" {
		kinds = slices.DeleteFunc(kinds, func(k backendKind) bool { return k.name != settings.backends })
	}
	if len(kinds) == 0 {
		return false, fmt.Errorf("-backends must be sqlite, postgres, sentinel, cluster or all, not %q", settings.backends)
	}
	if settings.binary, err = filepath.Abs(settings.binary); err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "penstock-chaos-")
	if err != nil {
		return false, err
	}
	if err := os.Chmod(dir, 0o711); err != nil { // PostgreSQL runs as another user
		return false, err
	}
	fmt.Printf("chaos: -seed %d -duration %v -faults %d -backends %s -frames %v -rate %v -hold %v, data in %s\n", settings.seed, settings.duration, settings.faults, settings.backends, settings.frames, settings.rate, settings.hold, dir)
	ok, shares := true, 0
	for _, k := range kinds {
		shares += k.share
	}
	for i, k := range kinds {
		partSettings := settings
		partSettings.duration, partSettings.faults = settings.duration*time.Duration(k.share)/time.Duration(shares), settings.faults*k.share/shares
		passed, err := runOn(ctx, k, filepath.Join(dir, k.name), partSettings, rand.New(rand.NewPCG(settings.seed, uint64(i))))
		if err != nil {
			return false, fmt.Errorf("on %s: %w (data and logs are kept in %s)", k.name, err, dir)
		}
		ok = ok && passed
	}
	if !ok {
		fmt.Printf("\nFAILED; repeat with -seed %d; data and logs are kept in %s\n", settings.seed, dir)
		return false, nil
	}
	return true, os.RemoveAll(dir)
}

// runOn runs on one kind of back ends, with its data in dir.
func runOn(ctx context.Context, kind backendKind, dir string, settings settings, random *rand.Rand) (ok bool, err error) {
	if err := os.Mkdir(dir, 0o711); err != nil {
		return false, err
	}
	s, err := newSite(ctx, kind, dir, settings)
	defer s.stop()
	if err != nil {
		return false, err
	}
	fmt.Printf("\non %s, gateways: %d\n", kind.name, len(s.gateways))
	ended := make(chan struct{})
	go func() { defer close(ended); s.runLoad(ctx) }()
	struck, err := s.strikeFaults(ctx, random)
	close(s.done)
	<-ended
	if err != nil {
		return false, err
	}
	verdicts, settleTime, err := s.settle(ctx)
	if err != nil {
		return false, err
	}
	s.verifyLedger(ctx)
	r := report{site: s, struck: struck, verdicts: verdicts, settleTime: settleTime}
	r.print(os.Stdout)
	return r.ok(), nil
}
