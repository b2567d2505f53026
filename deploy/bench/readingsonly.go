package main

import (
	"context"
	"time"
)

// readingsOnly are a gateway and a Telegraf that store the readings of frames and none of
// their radio data. They share an InfluxDB of their own.
type readingsOnly struct {
	gateway            *daemon
	telegraf           *telegraf
	sent, sentTelegraf int64
}

// readingsOnlyRounds are their measurements.
type readingsOnlyRounds struct {
	gateway, telegraf []frameRound
	lost              int64 // of Telegraf's frames
}

func (p *peers) readingsOnly(ctx context.Context, floor *bare, s settings) (o *readingsOnly, err error) {
	env := p.env
	p.env = append(env[:len(env):len(env)], "PENSTOCK_READINGS_RADIO_DATA=off")
	defer func() { p.env = env }()
	o = &readingsOnly{}
	if o.gateway, err = p.daemon(ctx, s); err != nil {
		return nil, err
	}
	if o.sent, err = warm(ctx, o.gateway, floor, s); err != nil {
		return nil, err
	}
	if o.telegraf, err = p.telegraf(ctx, o.gateway, ""); err != nil {
		return nil, err
	}
	s.seconds = time.Second
	round, err := o.telegraf.round(ctx, s, 0)
	o.sentTelegraf = round.count
	return o, err
}

// round loads each once.
func (o *readingsOnly) round(ctx context.Context, s settings, r *report) error {
	g, err := o.gateway.round(ctx, s, o.sent)
	if err != nil {
		return err
	}
	t, err := o.telegraf.round(ctx, s, o.sentTelegraf)
	if err != nil {
		return err
	}
	o.sent, o.sentTelegraf = o.sent+g.count, o.sentTelegraf+t.count
	r.readingsOnly.gateway, r.readingsOnly.telegraf = append(r.readingsOnly.gateway, g), append(r.readingsOnly.telegraf, t)
	return nil
}

func (o *readingsOnly) reconcile(ctx context.Context, r *report) error {
	stored, err := o.gateway.countPoints(ctx)
	if err != nil {
		return err
	}
	r.reconcile("frames whose readings only are stored", o.sent, stored, o.gateway.metric("penstock_quarantined_total{kind=\"uplink\"}"))
	stored, err = o.telegraf.count(ctx)
	r.readingsOnly.lost = o.sentTelegraf - stored
	return err
}
