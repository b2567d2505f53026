package main

import (
	"context"
	_ "embed" // the sources of decoders
	"fmt"
	"net/http"
)

// maxLoadedMemory is the aim for the gateway's memory at full load and under overload.
const maxLoadedMemory = 300 // MiB

// frames measures how fast a gateway accepts and stores frames, in turns with Telegrafs that
// store the same values in the same InfluxDB.
func frames(ctx context.Context, b *bench) error {
	g, err := b.gateway(ctx, options{})
	if err != nil {
		return err
	}
	measured := b.storing("gateway", g, b.sender(&g.target))
	subjects := []*subject{measured}
	var telegrafs []*telegraf
	if !b.embedded {
		if telegrafs, err = b.telegrafs(ctx, g); err != nil {
			return err
		}
		for _, t := range telegrafs {
			subjects = append(subjects, &t.subject)
		}
	}
	if err := b.inTurns(ctx, subjects...); err != nil {
		return err
	}
	b.loads("frames, medians", subjects)
	t := b.table("frames", "found", "aim")
	for i, tg := range telegrafs {
		t.compare(measured, &tg.subject, "accepted", outcome.acceptedRate, []string{"≥ 1.03", "≥ 6"}[i])
		t.compare(measured, &tg.subject, "stored", outcome.doneRate, []string{"≥ 0.76", "≥ 6"}[i])
	}
	t.row("peak memory of the gateway, MiB", peakMemory(g.pid())>>20, fmt.Sprintf("≤ %d", maxLoadedMemory))
	t.Flush()
	for _, tg := range telegrafs {
		stored, err := countPoints(ctx, tg.influx, tg.database, "SELECT count(temperature_1) FROM uplink")
		if err != nil {
			return err
		}
		// Telegraf does not guarantee that acknowledged frames are stored.
		fmt.Fprintf(b.w, "%s: frames acknowledged and not stored: %d\n", tg.name, tg.accepted.Load()-stored)
	}
	return b.reconcileFrames(ctx, "frames", g)
}

// The load of the part rules. Ten of the rules evaluate each frame, and none of them fires.
const (
	rulesCount   = 1000
	rulesDevices = 10_000
)

// rules measures how much rules slow down frames: it loads two gateways in turns, one
// without rules and one with rulesCount rules.
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
		return fmt.Errorf("rules evaluated %d of %d frames", n, gateways[1].accepted.Load())
	}
	for i, g := range gateways {
		if err := b.reconcileFrames(ctx, "frames "+subjects[i].name, g); err != nil {
			return err
		}
	}
	return nil
}

// createRule creates a rule with an action that posts to endpoints.
func (g *gateway) createRule(ctx context.Context, rule map[string]any, endpoints ...string) error {
	rule["actions"] = []any{map[string]any{"action": "http_post", "parameters": endpoints}}
	return postJSON(ctx, http.DefaultClient, g.url("/iot/rules"), accountToken, rule, nil)
}

// The sources of two codecs of the same payload: an expression as operators write it, and
// forty lines of JavaScript as vendors publish it.
var (
	//go:embed codec.expr
	codecExpr string
	//go:embed codec.js
	codecJavaScript string
)

// scripts measures how much slower JavaScript codecs are than expressions: it sends frames for
// two decoders to one gateway in turns.
func scripts(ctx context.Context, b *bench) error {
	codecs := []struct{ name, source string }{{"expr", codecExpr}, {"javascript", codecJavaScript}}
	var o options
	for _, c := range codecs {
		o.decoders += fmt.Sprintf("      - {id: %[1]s, name: %[1]s, type: lorawan, codec: %[1]s, useRawPayload: true, source: %[2]q, "+
			"sensors: [{sensor_type_id: temperature, key: temperature_1}, {sensor_type_id: humidity, key: relative_humidity_2}]}\n", c.name, c.source)
	}
	g, err := b.gateway(ctx, o)
	if err != nil {
		return err
	}
	var subjects []*subject
	for i, c := range codecs {
		s := b.sender(&g.target)
		s.decoder, s.firstDevice = c.name, int64(i)<<20 // a device keeps its decoder
		subjects = append(subjects, b.storing(c.name, g, s))
	}
	if err := b.inTurns(ctx, subjects...); err != nil {
		return err
	}
	b.loads("frames of scripts, medians", subjects)
	t := b.table("scripts", "found", "aim")
	t.compare(subjects[1], subjects[0], "stored", outcome.doneRate, "≥ 0.75")
	t.Flush()
	return b.reconcileFrames(ctx, "frames of scripts", g)
}
