package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/penstock/penstock/delivery/guard"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/uplink"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/rule"
)

// openRules opens the service for rules, which evaluates stored frames.
func (d *Gateway) openRules(context.Context) (err error) {
	late := &backlog{of: d.intakes[event.Uplink].Status, now: time.Now, behind: true}
	d.rules, err = rule.New(rule.Deps{
		Store: d.backends.records.Rules, Fleet: d.iot, Dispatcher: d.queue, CheckURL: guard.New(d.cfg.Egress.Allow).CheckURL, Behind: late.Behind,
	}, rule.Options{
		Settings: rule.Settings{Zone: d.cfg.TimeZone, MailDomain: mailDomain(d.cfg.SMTP.From), PublicURL: d.cfg.PublicURL}, Lease: d.queue.Lease(), Logger: d.log,
	})
	if err == nil {
		d.iot.EvaluateWith(d.rules)
	}
	return err
}

// backlog says whether frames wait to be processed, so that a device that seems to be
// silent may have been heard: while a back end is down, and until that has been made
// up for.
type backlog struct {
	of     func() intake.Status
	now    func() time.Time
	mu     sync.Mutex
	behind bool
	until  time.Time
}

// A gateway with more entries in its journal than late is behind, until there are
// fewer than a batch has, for some seconds.
const (
	late     = 20_000
	caughtUp = 5000
	settled  = 5 * time.Second
)

// Behind reports whether the gateway is behind.
func (b *backlog) Behind() bool {
	s := b.of()
	b.mu.Lock()
	defer b.mu.Unlock()
	switch now := b.now(); {
	case s.Waiting != "" || s.Lag > late:
		b.behind = true
	case b.behind && s.Lag < caughtUp:
		b.behind, b.until = false, now.Add(settled)
	}
	return b.behind || b.now().Before(b.until)
}

// declaredRules is the rules of an inventory; the service is opened after it.
type declaredRules struct{ d *Gateway }

func (r declaredRules) Rule(ctx context.Context, acct account.ID, id string) (rule.Rule, error) {
	return r.d.rules.Rule(ctx, acct, id)
}

func (r declaredRules) Rules(ctx context.Context, acct account.ID) ([]rule.Rule, error) {
	return r.d.rules.Rules(ctx, acct)
}

func (r declaredRules) Declare(ctx context.Context, acct account.ID, one rule.Rule) error {
	return r.d.rules.Declare(ctx, acct, one)
}

func (r declaredRules) Delete(ctx context.Context, acct account.ID, id string) error {
	return r.d.rules.Delete(ctx, acct, id)
}

// traceFrames explains how the frames of a post are read and stored, and what the
// rules of their account say of them.
func (d *Gateway) traceFrames(ctx context.Context, acct account.ID, it *intake.Item) ([]inbound.Step, []inbound.FrameTrace, error) {
	frames, err := uplink.NewInspector(d.intakes[event.Uplink], d.iot).Frames(ctx, it)
	if err != nil {
		return nil, nil, err
	}
	types, err := d.backends.records.Devices.SensorTypes(ctx)
	if err != nil {
		return nil, nil, err
	}
	var out []inbound.FrameTrace
	for i := range frames {
		f := &frames[i]
		traced := inbound.FrameTrace{
			ID: uplink.RecordOf(it, i, len(frames)), Text: fmt.Sprintf("%s of device %s; readings: %d", f.Kind, f.Identifier, len(f.Points)),
			Steps: uplink.Steps(f, types),
		}
		if f.Stored != nil {
			said, err := d.rules.Explain(ctx, acct, *f.Stored)
			if err != nil {
				return nil, nil, err
			}
			for _, e := range said {
				traced.Rules = append(traced.Rules, inbound.RuleTrace{RuleID: e.RuleID, Text: e.String(), About: e.About(f.Stored.Record)})
			}
		}
		out = append(out, traced)
	}
	return []inbound.Step{uplink.Sender(it.Entry.Source, len(frames))}, out, nil
}
