package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The records of the gateway whose console is measured. Each device has one alarm.
const (
	consoleDevices  = 10_000
	consoleMessages = 100_000 // outbound
	consoleInbound  = 10_000  // inbound messages whose relay refuses connections
	consoleTokens   = 1000    // tokens of a ledger, each with a job
	consoleSIMs     = 100_000
	viewsPerRound   = 20
)

// consoleRequests lists views of the console and the requests that each makes when it opens,
// as in ingest/console/web/views with 50 rows a page. DEVICE stands for the id of a device. A
// request with "#" is a POST, and the text after "#" is its body.
const consoleRequests = `
Overview: /status /devices?limit=1000 /traffic?range=day /balances?limit=1000 /sims?limit=1000 /alarms?state=raised&limit=500 /breakers
Overview: /messages?direction=out&state=rejected&limit=100 /messages?direction=out&state=undelivered&limit=100 /messages?direction=out&state=unknown&limit=100
Overview: /deliveries?state=dead&limit=500 /events?state=quarantined&limit=500 /events?state=unrouted&limit=500 /jobs?state=failed&limit=500
Devices: /devices?order=silent&limit=50 /devices?order=silent&q=Test+device+77&limit=50
Device: /devices/DEVICE?account=1 /alarms?account=1&device_id=DEVICE&limit=50
Device: /decoders/try#{"account":"1","device_id":"DEVICE","last":20}
Alarms: /alarms?limit=50 /alarms?state=cleared&limit=50
Messages: /messages?limit=50 /messages?direction=out&limit=50 /messages?state=unknown&limit=50
Messages: /messages?number=447705000000&limit=50&search_ms=200 /messages?number=447700900123&limit=50&search_ms=200
Events: /events?limit=50 /events?q=a840416b2c000103&limit=50&search_ms=200 /events?q=absent&limit=50&search_ms=200
Deliveries: /deliveries?limit=50 /deliveries?q=absent&limit=50&search_ms=200
Jobs: /jobs?limit=50
Rules: /alarms?limit=500 /rules?limit=50
Decoders: /decoders?limit=50 /devices?account=1&decoder=bench&limit=1
Relays: /relays?limit=50 /relays?limit=1000
SIMs: /sims?limit=50 /sims?q=8944000000000000777&limit=50
Credit: /credit?account=1&limit=50
Ledgers: /ledgers?limit=100 /ledgers/assets/tokens?account=1&limit=50 /ledgers/assets/entries?account=1&limit=50
Accounts: /accounts /tokens?account=1`

// console measures the requests of each view of the console.
func console(ctx context.Context, b *bench) error {
	b.devices, b.sends = consoleDevices, consoleMessages*(b.rounds+1) // one round sends all consoleMessages
	g, sending, err := b.gatewaySending(ctx, options{
		decoders: "    ledgers: [{id: assets, name: Assets}]\n", env: []string{"PENSTOCK_RULES_ACTIONS_PER_MINUTE=1000000"},
	})
	if err != nil {
		return err
	}
	if err := g.createRule(ctx, map[string]any{"name": "Warm", "on": "reading", "when": "values.temperature_1 > 0"}, "http://127.0.0.1:9/alarm"); err != nil {
		return err
	}
	for _, s := range []*subject{b.storing("devices", g, b.sender(&g.target)), sending} {
		if _, err := s.round(ctx); err != nil {
			return err
		}
	}
	client := newClient(b.conns)
	if err := b.spread(0, consoleInbound+consoleTokens, func(n int64) error {
		path, body := "/ledgers/assets/tokens", `{}`
		if n < consoleInbound {
			path, body = "/inbound/sms/json", fmt.Sprintf(`{"id":"c%d","from":"447700900123","to":"447800012345","text":"a message"}`, n)
		}
		return call(ctx, client, http.MethodPost, g.url(path), accountToken, body, nil)
	}); err != nil {
		return err
	}
	if err := g.fill(ctx, consoleSIMs, ""); err != nil {
		return err
	}
	var device string
	var alarms int64
	var page struct {
		Data []struct {
			DeviceID string `json:"device_id"`
		}
		Meta struct{ Next string }
	}
	for hasNext := true; hasNext; hasNext = page.Meta.Next != "" {
		url := g.url("/admin/alarms?limit=1000&cursor=" + page.Meta.Next)
		page.Meta.Next = ""
		if err := call(ctx, client, http.MethodGet, url, adminToken, "", &page); err != nil {
			return err
		}
		for _, a := range page.Data {
			device = a.DeviceID
			alarms++
		}
	}
	b.reconcile("alarms", consoleDevices, alarms, 0)
	var subjects []*subject
	for line := range strings.Lines(strings.TrimSpace(consoleRequests)) {
		view, requests, _ := strings.Cut(line, ": ")
		for _, request := range strings.Fields(requests) {
			path, body, posted := strings.Cut(strings.ReplaceAll(request, "DEVICE", device), "#")
			method := map[bool]string{false: http.MethodGet, true: http.MethodPost}[posted]
			subjects = append(subjects, &subject{name: view + ": " + request, cpu: g.cpu, round: func(ctx context.Context) (outcome, error) {
				return timed(viewsPerRound, func(int) error {
					return call(ctx, client, method, g.url("/admin"+path), adminToken, body, nil)
				})
			}})
		}
	}
	if err := b.inTurns(ctx, subjects...); err != nil {
		return err
	}
	t := b.table("requests of the console, medians", "CPU of gateway and PostgreSQL", "p50", "p95", "aim")
	defer t.Flush()
	for _, s := range subjects {
		used := s.median(func(o outcome) float64 { return float64(o.cpu[cpuProgram] + o.cpu[cpuPostgres]) })
		t.row(s.name, time.Duration(used/viewsPerRound), s.quantile(0.5), s.quantile(0.95), "≤ 300ms")
	}
	return nil
}
