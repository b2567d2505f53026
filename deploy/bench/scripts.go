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

// scripts measures what a published codec costs: frames of two decoders are sent to
// one gateway in turns.
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
