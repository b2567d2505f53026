package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// How overload is measured.
const (
	overloadFactor = 4           // times the peak that is offered
	overloadConns  = 2000        // over so many connections
	floodConns     = 500         // of the account that floods, as fast as it is answered
	slowConns      = 5000        // half of them with heads, half with bodies
	slowPause      = time.Second // between two bytes, on average
	quietRate      = 200         // frames a second of the quiet account
	quietConns     = 8
	quietDevices   = 100
	healthyRate    = 500         // frames a second beside the slow connections
	normalWindow   = time.Second // normal: nothing of a window is refused, and its p99 is that beside slow connections
	normalAtMost   = time.Minute
	aimGoodput     = 0.9
	aimAcceptedP99 = 500 * time.Millisecond
	aimOverloadRSS = 300 << 20
	aimNormal      = 5 * time.Second
	aimHealthyP99  = 50 * time.Millisecond
)

// overloaded are the results under overload.
type overloaded struct {
	peak, flood               counts
	before                    time.Duration // the quiet account's p99 when nothing else happens
	rss, most                 int64
	normal, drained           time.Duration // after the load, until answers are normal and everything is stored
	healthy, beside, flooding counts
	heads, bodies             int64 // slow connections that were opened
}

// site is a gateway and the two accounts that load it.
type site struct {
	*daemon
	s           settings
	next        *atomic.Int64
	base        time.Time
	acceptedSum int64
}

func (d *site) sender(conns int, rate float64) *sender {
	return &sender{addr: d.addr, token: d.token, conns: conns, rate: rate, devices: int64(d.s.devices), next: d.next, base: d.base}
}

// quiet is the other account, whose devices are its own.
func (d *site) quiet() *sender {
	c := d.sender(quietConns, quietRate)
	c.token, c.devices, c.firstDevice = "quiet-token-0123456", quietDevices, 1<<20
	return c
}

// run lets a sender send for a while.
func (d *site) run(ctx context.Context, c *sender, length time.Duration) (counts, error) {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	before := cpu(d.pid())
	t, err := c.run(ctx)
	t.cpu = cpu(d.pid()) - before
	d.acceptedSum += t.accepted
	return t, err
}

// site starts a gateway for senders.
func (p *peers) site(ctx context.Context, s settings) (*site, error) {
	d, err := p.daemon(ctx, s)
	return &site{daemon: d, s: s, next: new(atomic.Int64), base: time.Now().Add(-6 * time.Hour)}, err
}

// settle waits until everything that was accepted is stored.
func (d *site) settle(ctx context.Context) error { return d.stored(ctx, d.acceptedSum) }

// overload measures what a gateway does with more than it can take.
func overload(ctx context.Context, p *peers, s settings, r *report) error {
	d, err := p.site(ctx, s)
	if err != nil {
		return err
	}
	defer d.stop()
	o := &overloaded{}
	for _, stage := range []func(context.Context, *site, *overloaded) error{findPeak, floodAll, slowClients, floodOfOne} {
		if err := stage(ctx, d, o); err != nil {
			return err
		}
		if err := d.settle(ctx); err != nil {
			return err
		}
	}
	o.most = memory(d.pid())
	r.reconcile("frames under overload", d.acceptedSum, d.metric("penstock_accepted_total{kind=\"uplink\"}"), 0)
	r.overloaded = o
	return worstOfOne(ctx, p, s, r)
}

// findPeak measures the quiet account alone, then the most that is accepted.
func findPeak(ctx context.Context, d *site, o *overloaded) error {
	for _, c := range []*sender{d.sender(d.s.conns, 0), d.quiet()} {
		if _, err := d.run(ctx, c, 2*time.Second); err != nil {
			return err
		}
	}
	if err := d.settle(ctx); err != nil {
		return err
	}
	alone, err := d.run(ctx, d.quiet(), d.s.seconds)
	if err != nil {
		return err
	}
	o.before = alone.p(0.99)
	for range d.s.rounds {
		t, err := d.run(ctx, d.sender(d.s.conns, 0), d.s.seconds)
		if err != nil {
			return err
		}
		if o.peak.took == 0 || t.goodput() > o.peak.goodput() {
			o.peak = t
		}
		if err := d.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

// floodAll offers several times the peak, and then waits for the gateway to be as it
// was before.
func floodAll(ctx context.Context, d *site, o *overloaded) (err error) {
	watched, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { o.rss = mostResident(watched, d.pid()) })
	o.flood, err = d.run(ctx, d.sender(overloadConns, overloadFactor*o.peak.goodput()), 2*d.s.seconds)
	stop()
	wg.Wait()
	if err != nil {
		return err
	}
	ended := time.Now()
	for {
		t, err := d.run(ctx, d.quiet(), normalWindow)
		if err != nil {
			return err
		}
		if t.refused == 0 && t.p(0.99) <= aimHealthyP99 {
			o.normal = time.Since(ended)
			break
		}
		if time.Since(ended) > normalAtMost {
			return fmt.Errorf("not normal within %v of the overload: p99 %v, before %v", normalAtMost, t.p(0.99), o.before)
		}
	}
	if err := d.settle(ctx); err != nil {
		return err
	}
	o.drained = time.Since(ended)
	return nil
}

// floodOfOne has one account flood beside the quiet one.
func floodOfOne(ctx context.Context, d *site, o *overloaded) error {
	ctx, cancel := context.WithTimeout(ctx, d.s.seconds)
	defer cancel()
	var wg sync.WaitGroup
	var err error
	wg.Go(func() { o.flooding, err = d.sender(floodConns, 0).run(ctx) })
	beside, quietErr := d.quiet().run(ctx)
	wg.Wait()
	o.beside = beside
	d.acceptedSum += beside.accepted + o.flooding.accepted
	if err == nil {
		err = quietErr
	}
	return err
}

// slowClients opens connections that send a byte at a time, and measures others
// beside them.
func slowClients(ctx context.Context, d *site, o *overloaded) error {
	slow, stop := context.WithCancel(ctx)
	defer stop()
	request := d.sender(1, 0).newFrame().numbered(0)
	body := strings.Index(string(request), "\r\n\r\n") + len("\r\n\r\n") + 1
	var heads, bodies atomic.Int64
	var wg sync.WaitGroup
	for i := range slowConns {
		begin, count := 1, &heads
		if i%2 == 0 {
			begin, count = body, &bodies
		}
		wg.Go(func() { drip(slow, d.addr, request, begin, count) })
	}
	err := servers.Until(ctx, time.Minute, "every slow connection open", func() bool { return heads.Load()+bodies.Load() >= slowConns })
	if err == nil {
		c := d.sender(d.s.conns, healthyRate)
		o.healthy, err = d.run(ctx, c, 2*d.s.seconds)
	}
	stop()
	wg.Wait()
	o.heads, o.bodies = heads.Load(), bodies.Load()
	return err
}

// drip sends a request up to a byte at once and the rest byte by byte, never the last
// one, and connects again whenever the gateway ends the connection.
func drip(ctx context.Context, addr string, request []byte, begin int, opened *atomic.Int64) {
	for ctx.Err() == nil {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			sleep(ctx, slowPause)
			continue
		}
		opened.Add(1)
		_, err = conn.Write(request[:begin])
		for i := begin; i < len(request)-1 && err == nil && sleep(ctx, slowPause/2+rand.N(slowPause)); i++ {
			_, err = conn.Write(request[i : i+1])
		}
		_ = conn.Close()
	}
}

// mostResident is the most memory that a process and its children hold until ctx ends, in
// bytes.
func mostResident(ctx context.Context, pid int) (most int64) {
	for sleep(ctx, 50*time.Millisecond) {
		held := resident(pid)
		for _, child := range servers.Children(pid) {
			held += resident(child)
		}
		most = max(most, held)
	}
	return most
}

// printOverload prints each finding beside its aim.
func (r *report) printOverload(row func(cells ...any)) {
	o := r.overloaded
	if o == nil {
		return
	}
	defer row()
	ms := func(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }
	row("overload", "found", "aim")
	row(fmt.Sprintf("peak over %d connections, frames accepted a second", r.settings.conns), rate(o.peak.goodput()), "")
	row(fmt.Sprintf("%d times that due over %d connections, sent a second", overloadFactor, overloadConns), rate(o.flood.sent()), "")
	row("of them accepted a second", rate(o.flood.goodput()), "")
	row("of them refused with 503 a second", rate(float64(o.flood.refused)/o.flood.took.Seconds()), "")
	row("of them without an answer", o.flood.broken, "")
	row("accepted / peak", ratio(o.flood.goodput()/o.peak.goodput()), aim(aimGoodput))
	row("µs of CPU per accepted frame, at the peak and under overload", number(o.peak.micros())+", "+number(o.flood.micros()), "")
	row("p50 of what was accepted", ms(o.flood.p(0.5)), "")
	row("p99 of what was accepted", ms(o.flood.p(0.99)), "≤ "+aimAcceptedP99.String())
	row("memory during the overload, MiB", o.rss>>20, fmt.Sprintf("≤ %d", aimOverloadRSS>>20))
	row("the most memory of all stages, MiB", o.most>>20, "")
	row("afterwards, until nothing is refused and p99 ≤ "+aimHealthyP99.String(), o.normal.Round(10*time.Millisecond), "≤ "+aimNormal.String())
	row("afterwards, until everything is stored", o.drained.Round(10*time.Millisecond), "")
	row(fmt.Sprintf("p99 of %d a second beside %d slow connections", healthyRate, slowConns), ms(o.healthy.p(0.99)), "≤ "+aimHealthyP99.String())
	row("of them refused", o.healthy.refused, "")
	row("slow heads and slow bodies begun", fmt.Sprint(o.heads, ", ", o.bodies), "")
	row(fmt.Sprintf("p99 of a quiet account, %d a second, alone", quietRate), ms(o.before), "")
	row(fmt.Sprintf("beside an account that floods over %d connections", floodConns), ms(o.beside.p(0.99)), "≤ "+aimQuietP99.String())
	row("of the quiet account refused", o.beside.refused, "0")
	row("of the other accepted, refused a second", fmt.Sprintf("%.0f, %.0f", o.flooding.goodput(), float64(o.flooding.refused)/o.flooding.took.Seconds()), "")
}
