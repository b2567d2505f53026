package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// How one account at its worst is measured.
const (
	postConns     = 30
	postSize      = 813_000
	searchConns   = 50
	searchedPosts = 200 // of postSize
	searchedEvery = 20 * time.Millisecond
	rulesOfOne    = 60
	rulesConns    = 8
	followEvery   = 100 * time.Millisecond
	aimQuietP99   = 100 * time.Millisecond
	aimWorstRSS   = 300 << 20
)

// worst is what one account at its worst does to a quiet one.
type worst struct {
	name    string
	alone   time.Duration // the quiet account's p99 without the other
	quiet   counts
	stored  []time.Duration // from the post of the quiet account to the answer of the generic webhook, which waits until it is stored
	served  int64           // requests of the other that were answered with 2xx
	refused int64
	rss     int64 // the most memory of the gateway and its workers
}

// attack is what an account does: prepare, and then one request after the other on each of
// some connections.
type attack struct {
	name    string
	conns   int
	prepare func(context.Context, *site) error
	request func(ctx context.Context, d *site, conn, n int) (*http.Request, error)
}

func attacks() []attack {
	return []attack{
		{"posts", postConns, nil, largePost}, {"searches", searchConns, prepareSearches, search}, {"rules", rulesConns, prepareRules, frameOfRules},
	}
}

// worstOfOne measures each attack on a gateway of its own.
func worstOfOne(ctx context.Context, p *peers, s settings, r *report) error {
	env := p.env
	p.env = append(env[:len(env):len(env)], "PENSTOCK_ADMIN_TOKEN="+worstAdmin, "PENSTOCK_INBOUND_ANSWER_WAIT=1m")
	defer func() { p.env = env }()
	for _, a := range attacks() {
		d, err := p.site(ctx, s)
		if err != nil {
			return err
		}
		w, err := d.attacked(ctx, a)
		d.stop()
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		r.worst = append(r.worst, w)
	}
	return nil
}

// worstAdmin is the admin token of these gateways.
const worstAdmin = "worst-admin-token-0123456"

// attacked runs an attack beside the quiet account.
func (d *site) attacked(ctx context.Context, a attack) (*worst, error) {
	if a.prepare != nil {
		if err := a.prepare(ctx, d); err != nil {
			return nil, err
		}
	}
	w := &worst{name: a.name}
	for range 2 { // the devices are known from the first time on
		alone, err := d.run(ctx, d.quiet(), d.s.seconds)
		if err != nil {
			return nil, err
		}
		w.alone = alone.p(0.99)
	}
	attacked, stop := context.WithTimeout(ctx, 3*d.s.seconds)
	defer stop()
	var wg sync.WaitGroup
	var served, refused atomic.Int64
	errs := make([]error, a.conns+1)
	wg.Go(func() { w.rss = mostResident(attacked, d.pid()) })
	wg.Go(func() { w.stored, errs[a.conns] = d.follow(attacked) })
	client := newClient(a.conns)
	for conn := range a.conns {
		wg.Go(func() {
			for n := 0; attacked.Err() == nil && errs[conn] == nil; n++ {
				errs[conn] = d.attack(attacked, client, a, conn, n, &served, &refused)
			}
		})
	}
	quiet, err := d.run(attacked, d.quiet(), 3*d.s.seconds)
	wg.Wait()
	w.quiet, w.served, w.refused = quiet, served.Load(), refused.Load()
	for _, e := range errs {
		if err == nil {
			err = e
		}
	}
	return w, err
}

// attack makes one request; one that is refused comes again after a moment.
func (d *site) attack(ctx context.Context, client *http.Client, a attack, conn, n int, served, refused *atomic.Int64) error {
	req, err := a.request(ctx, d, conn, n)
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
		sleep(ctx, searchedEvery)
	default:
		err = fmt.Errorf("%s answered %d", req.URL.Path, resp.StatusCode)
	}
	return err
}

// follow posts readings of the quiet account to the webhook that answers when they are
// stored, one after the other.
func (d *site) follow(ctx context.Context) (took []time.Duration, err error) {
	client := newClient(1)
	for n := 0; sleep(ctx, followEvery); n++ {
		req, err := jsonPost(ctx, "http://"+d.addr+"/webhooks/generic", map[string]any{"deviceId": "follower", "temperature": n})
		if err != nil {
			return took, err
		}
		req.Header.Set("Authorization", "Bearer quiet-token-0123456")
		began := time.Now()
		err = answered(client, req, http.StatusOK, nil)
		if ctx.Err() != nil {
			took = append(took, time.Since(began)) // at least
			break
		}
		if err != nil {
			return took, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took, nil
}

// largePost posts as many readings, or as many objects, as fit.
func largePost(ctx context.Context, d *site, conn, n int) (*http.Request, error) {
	members := largeMembers()[conn%2]
	return d.authorized(ctx, http.MethodPost, "/webhooks/lorawan", d.token, fmt.Sprintf(`{"deviceId":"large-%d","n":%d`, conn, n)+members+"}")
}

// largeMembers are made once: the client shares the processors with the gateway.
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

func (d *site) authorized(ctx context.Context, method, path, token, body string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+d.addr+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	return req, nil
}

// prepareSearches has the journal hold frames and large posts.
func prepareSearches(ctx context.Context, d *site) error {
	if _, err := d.run(ctx, d.sender(d.s.conns, 0), d.s.seconds); err != nil {
		return err
	}
	text := strings.Repeat("z", postSize)
	for n := range searchedPosts {
		req, err := d.authorized(ctx, http.MethodPost, "/webhooks/lorawan", d.token, fmt.Sprintf(`{"devEUI":"%016x","text":%q}`, n, text))
		if err != nil {
			return err
		}
		if err := answered(http.DefaultClient, req, http.StatusOK, nil); err != nil {
			return err
		}
		d.acceptedSum++
	}
	return d.caughtUp(ctx)
}

// caughtUp waits until everything that was accepted is processed.
func (d *site) caughtUp(ctx context.Context) error {
	return servers.Until(ctx, time.Minute, "everything processed", func() bool { return d.metric(`penstock_lag{kind="uplink"}`) == 0 })
}

// search looks for what is nowhere, or lists all.
func search(ctx context.Context, d *site, conn, _ int) (*http.Request, error) {
	return d.authorized(ctx, http.MethodGet, []string{"/admin/events?kind=uplink&q=absent", "/admin/events?limit=1000", "/admin/deliveries?q=absent&limit=1000"}[conn%3], worstAdmin, "")
}

// prepareRules creates rules each of which acts on every frame.
func prepareRules(ctx context.Context, d *site) error {
	for n := range rulesOfOne {
		var targets []string
		for i := range 10 {
			targets = append(targets, fmt.Sprintf("http://%s/%d/%d", d.peers.sink, n, i))
		}
		req, err := jsonPost(ctx, "http://"+d.addr+"/iot/rules", map[string]any{
			"name": fmt.Sprintf("Rule %d", n), "on": "reading",
			"actions": []any{map[string]any{"action": "http_post", "parameters": targets}},
		})
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+d.token)
		if err := answered(http.DefaultClient, req, http.StatusCreated, nil); err != nil {
			return err
		}
	}
	return nil
}

// frameOfRules is a frame that all rules act on.
func frameOfRules(ctx context.Context, d *site, _, _ int) (*http.Request, error) {
	f := d.sender(1, 0).newFrame().numbered(d.next.Add(1))
	head, body, _ := strings.Cut(string(f), "\r\n\r\n")
	path := strings.Fields(head)[1]
	return d.authorized(ctx, http.MethodPost, path, d.token, body)
}

// printWorst prints what each attack did beside the aims.
func (r *report) printWorst(row func(cells ...any)) {
	if len(r.worst) == 0 {
		return
	}
	defer row()
	row("one account at its worst", "found", "aim")
	for _, w := range r.worst {
		row(w.name+": p99 of a quiet account from post to 200", w.quiet.p(0.99).Round(10*time.Microsecond), "≤ "+aimQuietP99.String())
		row("the same alone", w.alone.Round(10*time.Microsecond), "")
		row("of it refused", w.quiet.refused, "0")
		row("its readings: from post to stored, p50 and p99", fmt.Sprintf("%v, %v", quantile(w.stored, 0.5).Round(time.Millisecond), quantile(w.stored, 0.99).Round(time.Millisecond)), "")
		row("the most memory of gateway and workers, MiB", w.rss>>20, fmt.Sprintf("≤ %d", aimWorstRSS>>20))
		row("requests of the other served, refused", fmt.Sprint(w.served, ", ", w.refused), "")
	}
}
