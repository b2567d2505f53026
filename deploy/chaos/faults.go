package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// fault is something that goes wrong, and is mended after a while.
type fault struct {
	name   string
	strike func(ctx context.Context, lasts time.Duration) error
}

// faults are all that can go wrong at a site; random chooses a gateway.
func (s *site) faults(random *rand.Rand) []fault {
	all := append(s.gatewayFaults(random), s.outsideFaults()...)
	for _, b := range s.backends {
		all = append(all, fault{b.name + " is killed", func(ctx context.Context, lasts time.Duration) error {
			if err := b.server.Kill(ctx); err != nil {
				return err
			}
			wait(ctx, lasts)
			return b.server.Start(ctx)
		}}, fault{b.name + " is frozen", func(ctx context.Context, lasts time.Duration) error {
			servers.SignalAll(b.server.Cmd, syscall.SIGSTOP)
			defer servers.SignalAll(b.server.Cmd, syscall.SIGCONT)
			wait(ctx, lasts)
			return nil
		}})
		all = append(all, networkFaults(b.name, b.proxy)...)
		if b.emptied {
			all = append(all, fault{b.name + " is emptied", func(ctx context.Context, _ time.Duration) error { return flush(ctx, b.server.Addr) }})
		}
	}
	return all
}

// gatewayFaults are those of a gateway. What is frozen is a child of ours, without
// children.
func (s *site) gatewayFaults(random *rand.Rand) []fault {
	pick := func() *gateway { return s.gateways[random.IntN(len(s.gateways))] }
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
		{"a gateway is killed, and again as it recovers", func(ctx context.Context, _ time.Duration) error {
			g := pick()
			g.end(syscall.SIGKILL)
			if err := g.launch(ctx); err != nil {
				return err
			}
			if err := g.answers(ctx); err != nil {
				return err
			}
			g.end(syscall.SIGKILL)
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

// outsideFaults are those of the SMSC and of the sink.
func (s *site) outsideFaults() []fault {
	all := []fault{
		{"the SMSC is killed", func(ctx context.Context, lasts time.Duration) error {
			s.smsc.kill()
			wait(ctx, lasts)
			return s.smsc.start()
		}},
		{"the sink is killed", func(ctx context.Context, lasts time.Duration) error {
			s.sink.kill()
			wait(ctx, lasts)
			return s.sink.start()
		}},
	}
	for _, one := range []struct {
		name string
		manner
	}{{"the sink answers 500", failing}, {"the sink hangs", hanging}, {"the sink drips", dripping}, {"the sink resets", resetting}} {
		all = append(all, fault{one.name, func(ctx context.Context, lasts time.Duration) error {
			s.sink.begin(one.manner)
			wait(ctx, lasts)
			s.sink.end()
			return nil
		}})
	}
	return append(all, networkFaults("the SMSC", s.far)...)
}

// networkFaults are those between the gateways and a server.
func networkFaults(name string, p *proxy) []fault {
	lasting := func(t condition) func(context.Context, time.Duration) error {
		return func(ctx context.Context, lasts time.Duration) error {
			p.begin(t)
			wait(ctx, lasts)
			p.heal()
			return nil
		}
	}
	return []fault{
		{name + " is cut off", lasting(cut)},
		{name + " is slow", lasting(delayed)},
		{name + " is behind a black hole", lasting(stalled)},
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

// flush empties a Redis, past the proxy.
func flush(ctx context.Context, addr string) error {
	c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.Write([]byte("FLUSHALL\r\n")); err != nil {
		return err
	}
	said := make([]byte, 64)
	n, err := c.Read(said)
	if err != nil || string(said[:n]) != "+OK\r\n" {
		return fmt.Errorf("FLUSHALL: %q: %w", said[:n], err)
	}
	return nil
}

// struck is how often each fault struck.
type struck map[string]int

// breakThings lets faults strike one after the other, in rounds of all that there
// are in an order by chance, spread over a length of time.
func (s *site) breakThings(ctx context.Context, random *rand.Rand, count int, length time.Duration, say func(format string, args ...any)) (struck, error) {
	began, done := time.Now(), struck{}
	all := s.faults(random)
	var order []int
	for n := range count {
		if len(order) == 0 {
			order = random.Perm(len(all))
		}
		f := all[order[0]]
		order = order[1:]
		pause := random.Float64() * 2
		lasts := 300*time.Millisecond + time.Duration(random.Int64N(int64(s.settings.hold)))
		wait(ctx, time.Duration(pause*float64(length-time.Since(began))/float64(count-n))-lasts)
		if ctx.Err() != nil {
			return done, ctx.Err()
		}
		struckAt := time.Now()
		say("%6.1fs  %s", struckAt.Sub(began).Seconds(), f.name)
		if err := f.strike(ctx, lasts); err != nil {
			return done, fmt.Errorf("%s: %w", f.name, err)
		}
		say(", mended after %.1fs\n", time.Since(struckAt).Seconds())
		done[f.name]++
	}
	wait(ctx, length-time.Since(began))
	return done, ctx.Err()
}
