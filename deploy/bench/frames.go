package main

import (
	"context"
	"fmt"
)

// maxLoadedMemory is the aim for the gateway's memory at full load and under overload.
const maxLoadedMemory = 300 // MiB

// frames measures accepting and storing beside Telegrafs that store the same in the
// same InfluxDB.
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
		if err := tg.reportLost(ctx, b); err != nil {
			return err
		}
	}
	return b.reconcileFrames(ctx, "frames", g)
}
