package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

const (
	// deadOf is how many messages there are for each dead delivery.
	deadOf = 10
	// goneRelay sends to an endpoint that answers 404: what it takes is dead at once.
	goneRelay = `, {id: gone, prefix: "447800199", action: http_get, parameters: ["http://%s/sms?m=%%m"]}`
	// perKeptOrder is how many destinations an order of messages to keep has.
	perKeptOrder = 1000
	// keptPages is how often a list is asked for.
	keptPages = 200

	aimKeptMemory = 250 << 20
	aimRestart    = 2 * time.Second
	aimPage       = 20 * time.Millisecond
	aimSearch     = 200 * time.Millisecond
)

// kept is a gateway with embedded back ends that keeps many messages.
type kept struct {
	messages, dead     int64
	full, after, paged int64 // resident bytes: when all was taken, after a restart, after the lists
	restart            time.Duration
	lists              []keptList
}

// keptList is how long pages of a list took.
type keptList struct {
	name string
	outcome
	aim time.Duration
}

// measureKept fills a gateway with messages and dead deliveries, starts it again, and
// asks for its lists.
func measureKept(ctx context.Context, p *peers, s settings, r *report) error {
	if s.kept == 0 {
		return nil
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	defer gone.Close()
	s.embedded, p.relays = true, fmt.Sprintf(goneRelay, gone.Listener.Addr())
	defer func() { p.relays = "" }()
	d, err := p.daemon(ctx, s)
	if err != nil {
		return err
	}
	defer d.stop()
	k := &kept{messages: int64(s.kept), dead: int64(s.kept / deadOf)}
	if err := d.fillKept(ctx, k, s); err != nil {
		return err
	}
	k.full = d.resident()
	start := time.Now()
	if err := d.restart(ctx, s); err != nil {
		return err
	}
	k.restart, k.after = time.Since(start), d.resident()
	if err := k.measure(ctx, d); err != nil {
		return err
	}
	k.paged = d.resident()
	r.kept = k
	return nil
}

// fillKept sends messages through the simulated carrier, and has inbound ones die.
func (d *daemon) fillKept(ctx context.Context, k *kept, s settings) error {
	client := newClient(s.conns)
	defer client.CloseIdleConnections()
	s.conns = min(s.conns, 8)
	if err := spread(s, span{0, k.messages / perKeptOrder}, func(i int64) error {
		return d.sendOrder(ctx, client, i*perKeptOrder, perKeptOrder, "")
	}); err != nil {
		return err
	}
	if err := spread(s, span{0, k.dead}, func(n int64) error {
		return post(ctx, client, d, fmt.Sprintf("k%d", n), "447800199001", messageText(n))
	}); err != nil {
		return err
	}
	return servers.Until(ctx, time.Hour, "everything sent or dead", func() bool {
		return d.metric(`penstock_carrier_sending_accepted_total{carrier="simulator"}`) >= k.messages && d.metric("penstock_deliveries_dead_total") >= k.dead
	})
}

// measure requests pages of every list, the first and those behind it.
func (k *kept) measure(ctx context.Context, d *daemon) error {
	admin, err := os.ReadFile(filepath.Join(d.dir, "admin-token"))
	if err != nil {
		return err
	}
	client := &http.Client{}
	defer client.CloseIdleConnections()
	for _, list := range []struct {
		name, path string
		aim        time.Duration
	}{
		{"messages", "/admin/messages?account=1&limit=100", aimPage},
		{"messages delivered", "/admin/messages?account=1&state=delivered&limit=100", aimPage},
		{"messages to a number", "/admin/messages?account=1&number=4477%06d00&limit=100", aimPage},
		{"dead deliveries", "/admin/deliveries?state=dead&limit=100", aimPage},
		{"deliveries of a relay", "/admin/deliveries?relay=gone&limit=100", aimPage},
		{"events", "/admin/events?limit=100", aimPage},
		{"credit", "/admin/credit?account=1&limit=100", aimPage},
		{"a number among the dead", "/admin/deliveries?state=dead&q=447700900123&limit=100", aimSearch},
		{"a reason among the dead", "/admin/deliveries?state=dead&q=Not+Found&limit=100", aimSearch},
		{"a text that no dead one has", "/admin/deliveries?state=dead&q=nowhere&limit=100", aimSearch},
	} {
		next := ""
		took, err := timed(keptPages, func(n int) error {
			path := list.path
			if strings.Contains(path, "%06d") {
				path = fmt.Sprintf(path, n%100)
			}
			var page struct{ Meta struct{ Next string } }
			if err := getJSON(ctx, client, "http://"+d.addr+path+next, strings.TrimSpace(string(admin)), &page); err != nil {
				return err
			}
			if next = page.Meta.Next; next != "" {
				next = "&cursor=" + url.QueryEscape(next)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", list.name, err)
		}
		k.lists = append(k.lists, keptList{list.name, took, list.aim})
	}
	return nil
}

// restart ends the gateway and starts it on the same data.
func (d *daemon) restart(ctx context.Context, s settings) (err error) {
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := d.cmd.Wait(); err != nil {
		return err
	}
	return d.run(ctx, s)
}

// resident is the memory that the gateway has now, in bytes.
func (d *daemon) resident() int64 { return resident(d.pid()) }

// resident is the memory that a process holds, in bytes.
func resident(pid int) int64 {
	fields := servers.Stat(pid)
	if len(fields) < 22 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[21], 10, 64)
	return pages * int64(os.Getpagesize())
}

func (k *kept) print(say func(format string, args ...any), row func(cells ...any)) {
	mib := func(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }
	say("\na gateway with embedded back ends that keeps %d messages and %d dead deliveries: resident %s after the load, %s after a restart, %s after the lists (aim ≤ %s); "+
		"ended and ready again after %v (aim ≤ %v to start)\n\n", k.messages, k.dead, mib(k.full), mib(k.after), mib(k.paged), mib(aimKeptMemory), k.restart.Round(time.Millisecond), aimRestart)
	defer row()
	row("pages of 100", "p50", "p99", "aim")
	for _, l := range k.lists {
		row(l.name, l.p50.Round(10*time.Microsecond), l.p99.Round(10*time.Microsecond), "≤ "+l.aim.String())
	}
}
