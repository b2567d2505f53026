package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

// fault is something that goes wrong, and is mended after a while.
type fault struct {
	name   string
	strike func(ctx context.Context, lasts time.Duration) error
}

// weighted is a fault and how often it strikes beside others.
type weighted struct {
	fault
	weight float64
}

// on gives faults that so many kinds of back ends have their part of the strikes, so
// that over all kinds every fault strikes as often as any other.
func on(kinds int, faults []fault) (all []weighted) {
	for _, f := range faults {
		all = append(all, weighted{f, 1 / float64(kinds)})
	}
	return all
}

// faults are all that can go wrong at a site; random chooses a gateway.
func (s *site) faults(random *rand.Rand) []weighted {
	all := slices.Concat(on(len(backendKinds()), slices.Concat(s.gatewayFaults(random), s.outsideFaults())), on(len(backendKinds())-1, s.rollingFaults()), s.special)
	if s.kind.name == onSQLite {
		all = append(all, on(1, s.embeddedFaults(random))...)
	}
	return all
}

// gatewayFaults are those of a gateway. What is frozen is a child of ours, without
// children.
func (s *site) gatewayFaults(random *rand.Rand) []fault {
	pick := func() *gateway { return s.gateways[random.IntN(len(s.gateways))] }
	all := []fault{
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
	return slices.Concat(all, s.diskFaults(pick), s.damageFaults(random, pick))
}

// outsideFaults are those of the SMSC, the sink and the mailbox.
func (s *site) outsideFaults() []fault {
	all := []fault{stopped("the SMSC", s.smsc), stopped("the sink", s.sink)}
	all = append(all, mannerFaults("the sink", &s.sink.phase, map[manner]string{failing: "answers 500", hanging: "hangs", dripping: "drips", resetting: "resets"})...)
	all = append(all, stopped("the mail server", s.mailbox))
	all = append(all, mannerFaults("the mail server", &s.mailbox.phase, map[manner]string{failing: "answers 451", hanging: "hangs", resetting: "resets"})...)
	return slices.Concat(all, networkFaults("the SMSC", s.far), networkFaults("the mail server", s.mails))
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

// mannerFaults have a server answer in ways that have names.
func mannerFaults(name string, m *phase[manner], names map[manner]string) (all []fault) {
	for _, how := range slices.Sorted(maps.Keys(names)) {
		all = append(all, lasting(name+" "+names[how], func() { m.begin(how) }, func() { m.end() }))
	}
	return all
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

// strike is a fault that struck.
type strike struct {
	name         string
	began, ended time.Time
}

// struck are the faults that struck, in their order.
type struck []strike

// count returns how often each fault struck.
func (all struck) count() map[string]int {
	counts := map[string]int{}
	for _, one := range all {
		counts[one.name]++
	}
	return counts
}

// causeWithin is how long before a fault something may have come whose outcome the
// fault undid: the time that an attempt and the record of it take.
const causeWithin = 10 * time.Second

// noFault is the cause of what no fault explains.
const noFault = "no fault"

// causes counts, for things that came at those times and then once more, the fault
// that was under way then or struck next: it lost the answer, or the record of it.
func (all struck) causes(times []time.Time) map[string]int {
	counts := map[string]int{}
	for _, at := range times {
		name := noFault
		for _, one := range all {
			if !one.ended.Before(at) {
				if one.began.Sub(at) <= causeWithin {
					name = one.name
				}
				break
			}
		}
		counts[name]++
	}
	return counts
}

// choose returns the next fault: by chance, and in the long run each as often as its
// weight says. Credit is what each is due, and is changed.
func choose(all []weighted, credit []float64, random *rand.Rand) fault {
	next, sum := 0, 0.0
	for i, f := range all {
		credit[i] += f.weight * (0.5 + random.Float64())
		sum += f.weight
		if credit[i] > credit[next] {
			next = i
		}
	}
	credit[next] -= sum
	return all[next].fault
}

// breakThings lets faults strike one after the other, spread over a length of time.
func (s *site) breakThings(ctx context.Context, random *rand.Rand, count int, length time.Duration, say func(format string, args ...any)) (done struck, err error) {
	began := time.Now()
	all := s.faults(random)
	if only := s.settings.only; only != nil {
		all = slices.DeleteFunc(all, func(f weighted) bool { return !only.MatchString(f.name) })
	}
	if len(all) == 0 {
		return nil, errors.New("no fault has such a name")
	}
	credit := make([]float64, len(all))
	for n := range count {
		f := choose(all, credit, random)
		if first, ok := s.upgrade(); ok && n == 0 {
			f = first
		}
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
		done = append(done, strike{f.name, struckAt, time.Now()})
	}
	wait(ctx, length-time.Since(began))
	return done, ctx.Err()
}
