package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/penstock/penstock/deploy/servers"
)

// How many rules there are, and how many devices send beside them. One rule of a
// hundred looks at a frame, and none fires.
const (
	rulesCount   = 1000
	rulesDevices = 10_000
)

// pairRounds are the rounds of the same load in two ways, in turns.
type pairRounds struct{ first, second []frameRound }

// rates are the medians of the frames stored a second.
func (p pairRounds) rates() (first, second float64) {
	return median(p.first, frameRound.storedRate), median(p.second, frameRound.storedRate)
}

// compared is the ratio of those of the same round, and what a frame costs either way.
func (p pairRounds) compared(aim float64) string {
	return fmt.Sprintf("ratio %.2f, aim ≥ %.2f; µs of CPU per frame %.1f and %.1f", ratios(p.second, frameRound.storedRate, p.first, frameRound.storedRate), aim,
		median(p.first, frameRound.micros), median(p.second, frameRound.micros))
}

// measureRules measures what rules cost frames: two gateways, one of which has rules, are
// loaded in turns.
func measureRules(ctx context.Context, p *peers, s settings, r *report) error {
	s.devices = rulesDevices
	env := p.env
	p.env = append(env[:len(env):len(env)], "PENSTOCK_RULES_ACTIONS_PER_MINUTE=1000000")
	defer func() { p.env = env }()
	floor, err := p.bare(ctx)
	if err != nil {
		return err
	}
	defer servers.End(floor.proc)
	var both [2]*daemon
	var sent [2]int64
	for i := range both {
		if both[i], err = p.daemon(ctx, s); err != nil {
			return err
		}
		defer both[i].stop()
		if i == 1 {
			if err := both[i].createRules(ctx); err != nil {
				return err
			}
		}
		if sent[i], err = warm(ctx, both[i], floor, s); err != nil {
			return err
		}
	}
	for range s.rounds {
		var f [2]frameRound
		for i, d := range both {
			if f[i], err = d.round(ctx, s, sent[i]); err != nil {
				return err
			}
			sent[i] += f[i].count
		}
		r.ruled.first, r.ruled.second = append(r.ruled.first, f[0]), append(r.ruled.second, f[1])
	}
	if n := both[1].metric("penstock_rules_frames_total"); n != sent[1] {
		return fmt.Errorf("rules looked at %d of %d frames", n, sent[1])
	}
	for i, d := range both {
		stored, err := d.countPoints(ctx)
		if err != nil {
			return err
		}
		r.reconcile([]string{"frames without rules", "frames with rules"}[i], sent[i], stored, d.quarantined())
	}
	return nil
}

// createRules creates rules each of which looks at the devices whose numbers end alike.
func (d *daemon) createRules(ctx context.Context) error {
	for n := range rulesCount {
		req, err := jsonPost(ctx, "http://"+d.addr+"/iot/rules", map[string]any{
			"name": fmt.Sprintf("Rule %d", n), "on": "reading", "devices": map[string]string{"name": fmt.Sprintf("Test device *%02d", n%100)},
			"when": fmt.Sprintf("values.temperature_1 > %d and uplink.rssi > -120", 35+n/100), "clear": "values.temperature_1 < 30",
			"actions": []any{map[string]any{"action": "http_post", "parameters": []string{"http://" + d.peers.sink + "/alarm"}}},
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

// aimRuled is of the frames stored per second with rules beside those without.
const aimRuled = 0.9

func (r *report) printRuled(say func(format string, args ...any)) {
	if len(r.ruled.first) == 0 {
		return
	}
	without, with := r.ruled.rates()
	say("frames of %d devices accepted and stored, medians of %d rounds: %.0f/s without rules, %.0f/s with %d, of which ten look at each frame; %s\n",
		rulesDevices, len(r.ruled.first), without, with, rulesCount, r.ruled.compared(aimRuled))
}
