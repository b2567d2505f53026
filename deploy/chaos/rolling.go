package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// rollingFaults are restarts of all gateways, one after the other, while a balancer
// in front of them must not fail a request.
func (s *site) rollingFaults() []fault {
	if len(s.gateways) == 1 {
		return nil // nobody takes over
	}
	return []fault{{"all gateways are restarted one by one", s.renewAll}}
}

// upgrade is the first fault of a run whose gateways were started as the previous
// version. It strikes once: migrations of the database go forward only.
func (s *site) upgrade() (f fault, ok bool) {
	return fault{"all gateways are upgraded one by one", s.renewAll}, s.settings.firstBinary(s.kind) != s.settings.binary
}

// firstBinary is the program that gateways are started with.
func (o *settings) firstBinary(k backendKind) string {
	if k.gateways == 1 {
		return o.binary
	}
	return cmp.Or(o.previous, o.binary)
}

// renewAll restarts all gateways with the program that is tested.
func (s *site) renewAll(ctx context.Context, _ time.Duration) error {
	return s.unnoticed(ctx, func() error { return s.roll(ctx, s.settings.binary) })
}

// roll restarts each gateway with a program.
func (s *site) roll(ctx context.Context, binary string) error {
	for _, g := range s.gateways {
		if err := s.renew(ctx, g, binary); err != nil {
			return err
		}
	}
	return nil
}

// renew does what an operator does: takes a gateway out of the balancer, stops it,
// and puts it back once it is ready.
func (s *site) renew(ctx context.Context, g *gateway, binary string) error {
	g.balanced.Lock() // once everything that the balancer has asked is answered
	defer g.balanced.Unlock()
	if code := g.end(syscall.SIGTERM); code != 0 {
		s.note(fmt.Sprintf("%s ended with the exit code %d", g.name, code))
	}
	g.binary = binary
	return s.startGateway(ctx, g)
}

// probers is how many requests at once the balancer has while gateways are
// restarted.
const probers = 4

// unnoticed does something while probers send frames through a balancer, and notes
// every request that failed.
func (s *site) unnoticed(ctx context.Context, do func() error) error {
	balancer := &http.Client{Timeout: s.client.Timeout, Transport: &http.Transport{MaxIdleConnsPerHost: probers}}
	defer balancer.CloseIdleConnections()
	ended := make(chan struct{})
	var all sync.WaitGroup
	for range probers {
		all.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				if a := s.probe(ctx, balancer, int(s.probes.Add(1)-1)); !a.done() && ctx.Err() == nil {
					s.note(fmt.Sprintf("a request failed while gateways were restarted: %s: %d %.300s", a.of, a.status, a.body))
				}
			}
		})
	}
	err := do()
	close(ended)
	all.Wait()
	return err
}

// probe posts a reading to the next gateway that is in the balancer. No request is
// repeated.
func (s *site) probe(ctx context.Context, balancer *http.Client, n int) (a answer) {
	device, at := s.reading(ofProbes, n)
	body := fmt.Sprintf(`{"deviceId":%q,"count":%d,"time":%q}`, device, n, at.Format(time.RFC3339))
	for i := range s.gateways {
		g := s.gateways[(n+i)%len(s.gateways)]
		if !g.balanced.TryRLock() {
			continue
		}
		a, _ = ask(ctx, balancer, g, http.MethodPost, "/webhooks/generic?decoder_id=sent", body)
		g.balanced.RUnlock()
		break
	}
	if a.done() {
		s.ledger.readings[ofProbes].mark(n, acked)
	}
	return a
}
