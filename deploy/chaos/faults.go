package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"
)

// fault is a failure. strike causes it and repairs it after a time.
type fault struct {
	name   string
	strike func(ctx context.Context, length time.Duration) error
}

// faults returns all faults of a site. random selects the gateways that they strike.
func (s *site) faults(random *rand.Rand) []fault {
	pick := func() *gateway { return s.gateways[random.IntN(len(s.gateways))] }
	faults := slices.Concat(s.gatewayFaults(random, pick), s.diskFaults(pick), s.damageFaults(random, pick), s.backendFaults)
	faults = append(faults, killFault("the SMSC", s.smsc), killFault("the sink", s.sink))
	names := map[manner]string{failing: "answers 500", hanging: "hangs", resetting: "resets"}
	for _, manner := range slices.Sorted(maps.Keys(names)) {
		faults = append(faults, lastingFault("the sink "+names[manner], func() { s.sink.begin(manner) }, func() { s.sink.end() }))
	}
	if len(s.gateways) > 1 { // the other gateways take over
		faults = append(faults, fault{"all gateways are restarted one by one", s.restartAll}, fault{"a gateway is started on a copy of another's data", s.startCopy})
	}
	return append(faults, networkFaults("a bind to the SMSC", s.smscProxy)...)
}

// gatewayFaults returns the faults that strike one gateway. A gateway of a site has no children, so
// stopping its process freezes it.
func (s *site) gatewayFaults(random *rand.Rand, pick func() *gateway) []fault {
	return []fault{
		{"a gateway is killed", func(ctx context.Context, _ time.Duration) error {
			g := pick()
			g.end(syscall.SIGKILL)
			return s.startGateway(ctx, g)
		}},
		{"a gateway is killed, and again as it starts", func(ctx context.Context, _ time.Duration) error {
			g := pick()
			g.end(syscall.SIGKILL)
			for range 1 + random.IntN(3) {
				if err := g.launch(ctx); err != nil {
					return err
				}
				wait(ctx, time.Duration(random.Int64N(int64(800*time.Millisecond))))
				g.end(syscall.SIGKILL)
			}
			return s.startGateway(ctx, g)
		}},
		{"a gateway is away", func(ctx context.Context, length time.Duration) error {
			g := pick()
			g.end(syscall.SIGKILL)
			wait(ctx, length)
			return s.startGateway(ctx, g)
		}},
		{"a gateway is frozen", func(ctx context.Context, length time.Duration) error {
			g := pick()
			g.signal(syscall.SIGSTOP)
			wait(ctx, length)
			g.signal(syscall.SIGCONT)
			return nil
		}},
		{"a gateway is restarted", func(ctx context.Context, _ time.Duration) error {
			g := pick()
			g.end(syscall.SIGTERM)
			return s.startGateway(ctx, g)
		}},
	}
}

// killFault returns a fault that kills a server of this process and starts it again later.
func killFault(name string, server interface {
	kill()
	start() error
}) fault {
	return fault{name + " is killed", func(ctx context.Context, length time.Duration) error {
		server.kill()
		wait(ctx, length)
		return server.start()
	}}
}

// lastingFault returns a fault that calls begin, and end after its length.
func lastingFault(name string, begin, end func()) fault {
	return fault{name, func(ctx context.Context, length time.Duration) error {
		begin()
		wait(ctx, length)
		end()
		return nil
	}}
}

// networkFaults returns the faults of a proxy between the gateways and the server called name.
func networkFaults(name string, p *proxy) []fault {
	begin := func(c condition) func() { return func() { p.begin(c) } }
	return []fault{
		lastingFault(name+" is cut off", begin(cut), p.heal),
		lastingFault(name+" is slow", begin(delayed), p.heal),
		lastingFault(name+" is behind a black hole", begin(stalled), p.heal),
		{name + " has its connections reset", func(ctx context.Context, _ time.Duration) error {
			for range 3 {
				p.reset()
				wait(ctx, 200*time.Millisecond)
			}
			return nil
		}},
	}
}

// wait returns after a time, or when ctx ends.
func wait(ctx context.Context, length time.Duration) {
	select {
	case <-time.After(length):
	case <-ctx.Done():
	}
}

// during calls do while workers call send in a loop, each with a pause before each call. It
// returns the error of do once all workers have ended.
func during(workers int, pause time.Duration, send func(worker int), do func() error) error {
	ended := make(chan struct{})
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for {
				select {
				case <-ended:
					return
				case <-time.After(pause):
					send(worker)
				}
			}
		})
	}
	err := do()
	close(ended)
	wg.Wait()
	return err
}

// shuffled returns count faults in random order, in which each fault occurs once before any
// occurs again. It reorders faults.
func shuffled(faults []fault, count int, random *rand.Rand) (order []fault) {
	for len(order) < count {
		random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		order = append(order, faults...)
	}
	return order[:count]
}

// strikeFaults lets faults strike one after the other, spread over the duration of the load, and
// returns how often each of them struck.
func (s *site) strikeFaults(ctx context.Context, random *rand.Rand) (struck map[string]int, err error) {
	start, struck := time.Now(), map[string]int{}
	faults := s.faults(random)
	if only := s.settings.only; only != nil {
		faults = slices.DeleteFunc(faults, func(f fault) bool { return !only.MatchString(f.name) })
	}
	if len(faults) == 0 {
		return nil, fmt.Errorf("no fault of these back ends matches -only %s", s.settings.only)
	}
	for n, f := range shuffled(faults, s.settings.faults, random) {
		pause := random.Float64() * 2
		length := 300*time.Millisecond + time.Duration(random.Int64N(int64(s.settings.hold)))
		wait(ctx, time.Duration(pause*float64(s.settings.duration-time.Since(start))/float64(s.settings.faults-n))-length)
		if ctx.Err() != nil {
			return struck, ctx.Err()
		}
		struckAt := time.Now()
		fmt.Printf("%6.1fs  %s", struckAt.Sub(start).Seconds(), f.name)
		if err := f.strike(ctx, length); err != nil {
			return struck, fmt.Errorf("%s: %w", f.name, err)
		}
		fmt.Printf(", repaired after %.1fs\n", time.Since(struckAt).Seconds())
		struck[f.name]++
	}
	wait(ctx, s.settings.duration-time.Since(start))
	return struck, ctx.Err()
}
