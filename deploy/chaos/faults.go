package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"
)

// fault is something that goes wrong, and is mended after a while.
type fault struct {
	name   string
	strike func(ctx context.Context, lasts time.Duration) error
}

// faults are all that can go wrong at a site; random chooses a gateway.
func (s *site) faults(random *rand.Rand) []fault {
	pick := func() *gateway { return s.gateways[random.IntN(len(s.gateways))] }
	faults := slices.Concat(s.gatewayFaults(random, pick), s.diskFaults(pick), s.damageFaults(random, pick), s.special)
	faults = append(faults, stopped("the SMSC", s.smsc), stopped("the sink", s.sink))
	names := map[manner]string{failing: "answers 500", hanging: "hangs", resetting: "resets"}
	for _, manner := range slices.Sorted(maps.Keys(names)) {
		faults = append(faults, lasting("the sink "+names[manner], func() { s.sink.begin(manner) }, func() { s.sink.end() }))
	}
	if len(s.gateways) > 1 { // others take over
		faults = append(faults, fault{"all gateways are restarted one by one", s.renewAll}, fault{"a gateway is started on a copy of another's data", s.copied})
	}
	return append(faults, networkFaults("a bind to the SMSC", s.far)...)
}

// gatewayFaults are those of a gateway. What is frozen is a child of ours, without
// children.
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
		{"a gateway is away", func(ctx context.Context, lasts time.Duration) error {
			g := pick()
			g.end(syscall.SIGKILL)
			wait(ctx, lasts)
			return s.startGateway(ctx, g)
		}},
		{"a gateway is frozen", func(ctx context.Context, lasts time.Duration) error {
			g := pick()
			g.signal(syscall.SIGSTOP)
			wait(ctx, lasts)
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

// stopped has a server of ours killed and started later.
func stopped(name string, server interface {
	kill()
	start() error
}) fault {
	return fault{name + " is killed", func(ctx context.Context, lasts time.Duration) error {
		server.kill()
		wait(ctx, lasts)
		return server.start()
	}}
}

// lasting is a fault that begins, and ends after a while.
func lasting(name string, begin, end func()) fault {
	return fault{name, func(ctx context.Context, lasts time.Duration) error {
		begin()
		wait(ctx, lasts)
		end()
		return nil
	}}
}

// networkFaults are those between the gateways and a server.
func networkFaults(name string, p *proxy) []fault {
	under := func(c condition) func() { return func() { p.begin(c) } }
	return []fault{
		lasting(name+" is cut off", under(cut), p.heal),
		lasting(name+" is slow", under(delayed), p.heal),
		lasting(name+" is behind a black hole", under(stalled), p.heal),
		{name + " has its connections reset", func(ctx context.Context, _ time.Duration) error {
			for range 3 {
				p.reset()
				wait(ctx, 200*time.Millisecond)
			}
			return nil
		}},
	}
}

// wait lets time pass.
func wait(ctx context.Context, lasts time.Duration) {
	select {
	case <-time.After(lasts):
	case <-ctx.Done():
	}
}

// during does something while workers, each with a pause between two items, send one item
// after the other.
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

// deal returns so many faults in an order by chance, in which each strikes once before any
// strikes again.
func deal(faults []fault, count int, random *rand.Rand) (dealt []fault) {
	for len(dealt) < count {
		random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		dealt = append(dealt, faults...)
	}
	return dealt[:count]
}

// breakThings lets faults strike one after the other, spread over a length of time, and
// returns how often each of them struck.
func (s *site) breakThings(ctx context.Context, random *rand.Rand) (struck map[string]int, err error) {
	began, struck := time.Now(), map[string]int{}
	faults := s.faults(random)
	if only := s.settings.only; only != nil {
		faults = slices.DeleteFunc(faults, func(f fault) bool { return !only.MatchString(f.name) })
	}
	if len(faults) == 0 {
		return nil, errors.New("no fault has such a name")
	}
	for n, f := range deal(faults, s.settings.faults, random) {
		pause := random.Float64() * 2
		lasts := 300*time.Millisecond + time.Duration(random.Int64N(int64(s.settings.hold)))
		wait(ctx, time.Duration(pause*float64(s.settings.duration-time.Since(began))/float64(s.settings.faults-n))-lasts)
		if ctx.Err() != nil {
			return struck, ctx.Err()
		}
		struckAt := time.Now()
		fmt.Printf("%6.1fs  %s", struckAt.Sub(began).Seconds(), f.name)
		if err := f.strike(ctx, lasts); err != nil {
			return struck, fmt.Errorf("%s: %w", f.name, err)
		}
		fmt.Printf(", mended after %.1fs\n", time.Since(struckAt).Seconds())
		struck[f.name]++
	}
	wait(ctx, s.settings.duration-time.Since(began))
	return struck, ctx.Err()
}
