package main

import (
	"context"
	"fmt"
	"net/http"
)

// How many rules there are, and how many devices send beside them. Ten of the rules look
// at a frame, and none fires.
const (
	rulesCount   = 1000
	rulesDevices = 10_000
)

// rules measures what rules cost frames: two gateways, one of which has rules, are
// loaded in turns.
func rules(ctx context.Context, b *bench) error {
	b.devices = rulesDevices
	var subjects []*subject
	var gateways []*gateway
	for _, name := range []string{"without rules", fmt.Sprintf("%d rules", rulesCount)} {
		g, err := b.gateway(ctx, options{env: []string{"PENSTOCK_RULES_ACTIONS_PER_MINUTE=1000000"}})
		if err != nil {
			return err
		}
		subjects, gateways = append(subjects, b.storing(name, g, b.sender(&g.target))), append(gateways, g)
	}
	for n := range rulesCount {
		if err := gateways[1].createRule(ctx, map[string]any{
			"name": fmt.Sprintf("Rule %d", n), "on": "reading", "devices": map[string]string{"name": fmt.Sprintf("Test device *%02d", n%100)},
			"when": fmt.Sprintf("values.temperature_1 > %d and uplink.rssi > -120", 35+n/100), "clear": "values.temperature_1 < 30",
		}, "http://127.0.0.1:9/alarm"); err != nil {
			return err
		}
	}
	if err := b.inTurns(ctx, subjects...); err != nil {
		return err
	}
	b.loads(fmt.Sprintf("frames of %d devices, medians", rulesDevices), subjects)
	t := b.table("rules", "found", "aim")
	t.compare(subjects[1], subjects[0], "stored", outcome.doneRate, "≥ 0.90")
	t.Flush()
	if n := gateways[1].metric(ctx, "penstock_rules_frames_total"); n != gateways[1].accepted.Load() {
		return fmt.Errorf("rules looked at %d of %d frames", n, gateways[1].accepted.Load())
	}
	for i, g := range gateways {
		if err := b.reconcileFrames(ctx, "frames "+subjects[i].name, g); err != nil {
			return err
		}
	}
	return nil
}

// createRule creates a rule that posts to endpoints.
func (g *gateway) createRule(ctx context.Context, rule map[string]any, endpoints ...string) error {
	rule["actions"] = []any{map[string]any{"action": "http_post", "parameters": endpoints}}
	return postJSON(ctx, http.DefaultClient, g.url("/iot/rules"), accountToken, rule, nil)
}
