package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// The loads and limits of the part overload.
const (
	overloadFactor = 4 // offered load / peak
	overloadConns  = 2000
	floodConns     = 500 // connections of the flooding account
	quietRate      = 200 // frames a second
	quietConns     = 8
	quietDevices   = 100
	healthyP99     = 50 * time.Millisecond
	normalWindow   = time.Second // a window is normal if no frame is refused and p99 ≤ healthyP99
	maxRecovery    = time.Minute
)

// site is a gateway with a loud account and a quiet account, and the table of the results.
type site struct {
	*gateway
	*bench
	table
	loud, quiet *sender
}

// site starts a gateway and begins a table with the heads.
func (b *bench) site(ctx context.Context, heads ...any) (*site, error) {
	g, err := b.gateway(ctx, options{env: []string{"PENSTOCK_INBOUND_ANSWER_WAIT=1m"}})
	if err != nil {
		return nil, err
	}
	s := &site{gateway: g, bench: b, loud: b.sender(&g.target), table: b.table(heads...)}
	s.quiet = s.loud.withRate(quietConns, quietRate)
	s.quiet.token, s.quiet.devices, s.quiet.firstDevice = quietToken, quietDevices, 1<<20
	return s, nil
}

// overload measures how a gateway behaves when it gets more frames than it can accept.
func overload(ctx context.Context, b *bench) error {
	s, err := b.site(ctx, "overload", "found", "aim")
	if err != nil {
		return err
	}
	peak, err := s.findPeak(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(s.floodAll(ctx, peak), s.settle(ctx)); err != nil {
		return err
	}
	var wg sync.WaitGroup
	var flood outcome
	var floodErr error
	wg.Go(func() { flood, floodErr = s.loud.withRate(floodConns, 0).run(ctx, s.seconds) })
	o, err := s.quiet.run(ctx, s.seconds)
	wg.Wait()
	s.row(fmt.Sprintf("p99 of the quiet account while another floods over %d connections", floodConns), o.quantile(0.99), "≤ 100ms")
	s.row("frames of the quiet account refused", o.refused, 0)
	s.row("frames of the other account accepted a second, refused", fmt.Sprintf("%.0f, %d", flood.acceptedRate(), flood.refused), "")
	if err := errors.Join(err, floodErr, s.settle(ctx)); err != nil {
		return err
	}
	s.row("peak memory of the gateway, MiB", peakMemory(s.pid())>>20, "")
	s.Flush()
	if err := b.reconcileFrames(ctx, "frames under overload", s.gateway); err != nil {
		return err
	}
	return b.attacks(ctx)
}

// findPeak returns the highest rate of accepted frames a second of all rounds.
func (s *site) findPeak(ctx context.Context) (peak float64, err error) {
	for _, sender := range []*sender{s.loud, s.quiet} { // import their devices
		if _, err := sender.run(ctx, s.seconds/2); err != nil {
			return 0, err
		}
	}
	if err := s.settle(ctx); err != nil {
		return 0, err
	}
	for range s.rounds {
		o, err := s.loud.run(ctx, s.seconds)
		if err := errors.Join(err, s.settle(ctx)); err != nil {
			return 0, err
		}
		peak = max(peak, o.acceptedRate())
	}
	s.row(fmt.Sprintf("peak over %d connections, frames accepted a second", s.conns), rounded(peak), "")
	return peak, nil
}

// floodAll offers overloadFactor times the peak, then waits until the gateway answers as
// before and has stored everything.
func (s *site) floodAll(ctx context.Context, peak float64) error {
	watchCtx, stop := context.WithCancel(ctx)
	var memory int64
	var wg sync.WaitGroup
	wg.Go(func() { memory = maxResident(watchCtx, s.pid()) })
	o, err := s.loud.withRate(overloadConns, overloadFactor*peak).run(ctx, 2*s.seconds)
	stop()
	wg.Wait()
	if err != nil {
		return err
	}
	perSecond := func(n int64) string { return rounded(float64(n) / o.accepted.Seconds()) }
	s.row(fmt.Sprintf("%d times the peak offered over %d connections, frames sent a second", overloadFactor, overloadConns), perSecond(o.count+o.refused+o.broken), "")
	s.row("accepted, refused with 503, not answered a second", fmt.Sprintf("%s, %s, %s", perSecond(o.count), perSecond(o.refused), perSecond(o.broken)), "")
	s.row("accepted / peak", o.acceptedRate()/peak, "≥ 0.90")
	s.row("p99 of accepted frames", o.quantile(0.99), "≤ 500ms")
	s.row("memory during the overload, MiB", memory>>20, fmt.Sprintf("≤ %d", maxLoadedMemory))
	ended := time.Now()
	for {
		o, err := s.quiet.run(ctx, normalWindow)
		if err != nil {
			return err
		}
		if o.refused == 0 && o.quantile(0.99) <= healthyP99 {
			break
		}
		if time.Since(ended) > maxRecovery {
			return fmt.Errorf("not normal within %v after the overload: %d refused, p99 %v", maxRecovery, o.refused, o.quantile(0.99))
		}
	}
	s.row(fmt.Sprintf("time until nothing is refused and p99 ≤ %v", healthyP99), time.Since(ended), "≤ 5s")
	err = s.settle(ctx)
	s.row("time until everything is stored", time.Since(ended), "")
	return err
}

// The loads of the attacks by one account.
const (
	postConns     = 30
	postSize      = 813_000 // bytes
	searchConns   = 50
	searchedPosts = 200 // posts of postSize in the journal
	refusedPause  = 20 * time.Millisecond
	attackRules   = 60
	rulesConns    = 8
)

// attack is a load by one account. After prepare, which may be nil, each of conns connections
// sends one request after the other.
type attack struct {
	name    string
	conns   int
	prepare func(context.Context, *site) error
	request func(ctx context.Context, s *site, conn, n int) (*http.Request, error)
}

// attacks measures how much each attack by one account slows down a quiet account, on a new
// gateway for each attack.
func (b *bench) attacks(ctx context.Context) error {
	for _, a := range []attack{
		{"posts", postConns, nil, largePost},
		{"searches", searchConns, prepareSearches, func(ctx context.Context, s *site, conn, _ int) (*http.Request, error) {
			query := []string{"/admin/events?kind=uplink&q=absent", "/admin/events?limit=1000", "/admin/deliveries?q=absent&limit=1000"}[conn%3]
			return newRequest(ctx, http.MethodGet, s.url(query), adminToken, "")
		}},
		{"rules", rulesConns, prepareRules, func(ctx context.Context, s *site, _, _ int) (*http.Request, error) {
			return newRequest(ctx, http.MethodPost, s.url("/webhooks/lorawan?event=up&decoder_id=bench"), accountToken, s.loud.body(s.counter.Add(1)))
		}},
	} {
		b.Stop()
		s, err := b.site(ctx, "attack by one account: "+a.name, "found", "aim")
		if err != nil {
			return err
		}
		if err := s.measureAttack(ctx, a); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		s.Flush()
	}
	return nil
}

// measureAttack runs an attack while the quiet account sends, and prints the results.
func (s *site) measureAttack(ctx context.Context, a attack) error {
	if a.prepare != nil {
		if err := a.prepare(ctx, s); err != nil {
			return err
		}
	}
	var alone outcome
	for range 2 { // the first run imports the devices
		var err error
		if alone, err = s.quiet.run(ctx, s.seconds); err != nil {
			return err
		}
	}
	attackCtx, stop := context.WithTimeout(ctx, 3*s.seconds)
	defer stop()
	var wg sync.WaitGroup
	var served, refused atomic.Int64
	var memory int64
	errs := make([]error, a.conns+1)
	wg.Go(func() { memory = maxResident(attackCtx, s.pid()) })
	client := newClient(a.conns)
	for conn := range a.conns {
		wg.Go(func() {
			for n := 0; attackCtx.Err() == nil && errs[conn] == nil; n++ {
				errs[conn] = s.attack(attackCtx, client, a, conn, n, &served, &refused)
			}
		})
	}
	var o outcome
	o, errs[a.conns] = s.quiet.run(attackCtx, 3*s.seconds)
	wg.Wait()
	s.row("p99 of the quiet account from POST to 200", o.quantile(0.99), "≤ 100ms")
	s.row("p99 of the quiet account before the attack", alone.quantile(0.99), "")
	s.row("frames of the quiet account refused", o.refused, 0)
	s.row("peak memory of gateway and workers, MiB", memory>>20, fmt.Sprintf("≤ %d", maxLoadedMemory))
	s.row("requests of the attack served, refused", fmt.Sprint(served.Load(), ", ", refused.Load()), "")
	return errors.Join(errs...)
}

// attack makes one request. After a refusal it pauses for refusedPause.
func (s *site) attack(ctx context.Context, client *http.Client, a attack, conn, n int, served, refused *atomic.Int64) error {
	req, err := a.request(ctx, s, conn, n)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	switch {
	case ctx.Err() != nil:
		err = nil // the attack has ended
	case err != nil:
	case resp.StatusCode/100 == 2:
		served.Add(1)
	case resp.StatusCode == http.StatusServiceUnavailable:
		refused.Add(1)
		sleep(ctx, refusedPause)
	default:
		err = fmt.Errorf("%s answered %d", req.URL.Path, resp.StatusCode)
	}
	return err
}

// largePost returns a POST with as many readings, or as many objects, as fit into postSize.
func largePost(ctx context.Context, s *site, conn, n int) (*http.Request, error) {
	members := largeMembers()[conn%2]
	return newRequest(ctx, http.MethodPost, s.url("/webhooks/lorawan"), accountToken, fmt.Sprintf(`{"deviceId":"large-%d","n":%d`, conn, n)+members+"}")
}

// largeMembers are built once because this process shares the processors with the gateway.
var largeMembers = sync.OnceValue(func() [2]string {
	var readings, objects strings.Builder
	for key := 0; readings.Len() < postSize; key++ {
		fmt.Fprintf(&readings, `,"k%d":%d`, key, key)
	}
	for key := 0; objects.Len() < postSize; key++ {
		fmt.Fprintf(&objects, `,"o%d":{"a":{}}`, key)
	}
	return [2]string{readings.String(), objects.String()}
})

// prepareSearches fills the journal with frames and large posts.
func prepareSearches(ctx context.Context, s *site) error {
	if _, err := s.loud.run(ctx, s.seconds); err != nil {
		return err
	}
	text := strings.Repeat("z", postSize)
	for n := range searchedPosts {
		body := fmt.Sprintf(`{"devEUI":"%016x","text":%q}`, n, text)
		if err := call(ctx, http.DefaultClient, http.MethodPost, s.url("/webhooks/lorawan"), accountToken, body, nil); err != nil {
			return err
		}
	}
	return servers.Until(ctx, time.Minute, "everything to be processed", func() bool { return s.metric(ctx, `penstock_entries_pending{kind="uplink"}`) == 0 })
}

// prepareRules creates rules that all fire for every frame and post to ten endpoints each.
func prepareRules(ctx context.Context, s *site) error {
	for n := range attackRules {
		var endpoints []string
		for i := range 10 {
			endpoints = append(endpoints, fmt.Sprintf("http://127.0.0.1:9/%d/%d", n, i))
		}
		if err := s.createRule(ctx, map[string]any{"name": fmt.Sprintf("Rule %d", n), "on": "reading"}, endpoints...); err != nil {
			return err
		}
	}
	return nil
}
