package main

import (
	"context"
	_ "embed" // the sources of decoders
	"fmt"
)

// codecs are the sources of two decoders of the same payload: one as an operator
// writes it, and one of forty lines as vendors publish it.
var (
	//go:embed codec.expr
	codecExpr string
	//go:embed codec.js
	codecJavaScript string
)

// aimScripted is of frames stored a second by the JavaScript decoder beside those of
// the expr decoder.
const aimScripted = 0.75

// measureScripts measures what a published codec costs: frames of two decoders are sent to
// one gateway in turns.
func measureScripts(ctx context.Context, p *peers, s settings, r *report) error {
	for _, one := range []struct{ codec, source string }{{"expr", codecExpr}, {"javascript", codecJavaScript}} {
		p.decoders += fmt.Sprintf("      - {id: %[1]s, name: %[1]s, type: lorawan, codec: %[1]s, useRawPayload: true, source: %[2]q, "+
			"sensors: [{sensor_type_id: temperature, key: temperature_1}, {sensor_type_id: humidity, key: relative_humidity_2}]}\n", one.codec, one.source)
	}
	defer func() { p.decoders = "" }()
	d, err := p.daemon(ctx, s)
	if err != nil {
		return err
	}
	defer d.stop()
	var sent int64
	for i := range 2 * (s.rounds + 1) {
		s.decoder = []string{"expr", "javascript"}[i%2]
		s.firstDevice = int64(i%2) << 20 // a device keeps its decoder
		f, err := d.round(ctx, s, sent)
		if err != nil {
			return err
		}
		sent += f.count
		switch {
		case i < 2: // the first ones import devices
		case i%2 == 0:
			r.scripted.first = append(r.scripted.first, f)
		default:
			r.scripted.second = append(r.scripted.second, f)
		}
	}
	stored, err := d.countPoints(ctx)
	if err != nil {
		return err
	}
	r.reconcile("frames of scripts", sent, stored, d.quarantined())
	return nil
}

func (r *report) printScripted(say func(format string, args ...any)) {
	if len(r.scripted.second) == 0 {
		return
	}
	expr, javascript := r.scripted.rates()
	say("frames accepted and stored, medians of %d rounds: %.0f/s by an expr decoder, %.0f/s by a JavaScript codec of 40 lines; %s\n",
		len(r.scripted.second), expr, javascript, r.scripted.compared(aimScripted))
}
