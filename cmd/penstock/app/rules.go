package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/penstock/penstock/delivery/guard"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/uplink"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/rule"
)

// openRules opens the service for rules, which evaluates stored frames.
func (g *Gateway) openRules(r *recordStores, sender outbox.Sender, proc processing) (*rule.Service, error) {
	frames := &backlog{status: proc.intakes[event.Uplink].Status, now: time.Now, isBehind: true}
	rules, err := rule.New(rule.Deps{
		Store: r.Rules, Fleet: proc.devices, Deliveries: sender, CheckURL: guard.New(g.cfg.Egress.Allow).CheckURL, Behind: frames.Behind,
	}, rule.Options{
		Settings: rule.Settings{Zone: g.cfg.TimeZone, MailDomain: mailDomain(g.cfg.SMTP.From), PublicURL: g.cfg.PublicURL}, Logger: g.log,
		ActionsPerFrame: g.cfg.Rules.ActionsPerFrame, ActionsPerMinute: g.cfg.Rules.ActionsPerMinute,
	})
	if err != nil {
		return nil, err
	}
	g.whileOpen(rules.Run)
	return rules, nil
}

// backlog reports whether many frames wait to be processed. While they wait, a device may seem
// silent although the journal has frames of the device.
type backlog struct {
	status func() intake.Status
	now    func() time.Time

	mu          sync.Mutex
	isBehind    bool
	settleUntil time.Time
}

// A gateway is behind if its journal has more than behindAbove unprocessed entries, or waits for a
// back end. It stays behind for settleTime after the journal has fewer than caughtUpBelow.
const (
	behindAbove   = 20_000
	caughtUpBelow = 5000
	settleTime    = 5 * time.Second
)

// Behind reports whether the gateway is behind.
func (b *backlog) Behind() bool {
	s := b.status()
	b.mu.Lock()
	defer b.mu.Unlock()
	switch now := b.now(); {
	case s.Outage != "" || s.Lag > behindAbove:
		b.isBehind = true
	case b.isBehind && s.Lag < caughtUpBelow:
		b.isBehind, b.settleUntil = false, now.Add(settleTime)
	}
	return b.isBehind || b.now().Before(b.settleUntil)
}

// frameTracer explains how the frames of a request are parsed and stored, and which rules apply to
// them.
type frameTracer struct {
	frames *uplink.Inspector
	types  *iot.Store
	rules  *rule.Service
}

func (f frameTracer) trace(ctx context.Context, acct relay.AccountID, it *intake.Item) ([]inbound.Step, []inbound.FrameTrace, error) {
	frames, err := f.frames.Frames(ctx, it)
	if err != nil {
		return nil, nil, err
	}
	types, err := f.types.SensorTypes(ctx)
	if err != nil {
		return nil, nil, err
	}
	var traces []inbound.FrameTrace
	for i := range frames {
		frame := &frames[i]
		trace := inbound.FrameTrace{
			ID: uplink.RecordOf(it, i, len(frames)), Text: fmt.Sprintf("Frame from %s: %s.", frame.Identifier, frame.Kind), Steps: uplink.Steps(frame, types),
		}
		if frame.Stored != nil {
			explanation, err := f.rules.Explain(ctx, acct, *frame.Stored)
			if err != nil {
				return nil, nil, err
			}
			for _, e := range explanation {
				trace.Rules = append(trace.Rules, inbound.RuleTrace{RuleID: e.RuleID, Name: e.Name, Text: e.String(), MessageID: e.About(frame.Stored.RecordID)})
			}
		}
		traces = append(traces, trace)
	}
	return []inbound.Step{uplink.SenderStep(it.Entry.Source, len(frames))}, traces, nil
}
