package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/deploy/servers"
)

// maxLoadedMemory is the aim for the gateway's memory at full load and under overload.
const maxLoadedMemory = 300 // MiB

// readingsPerFrame is the number of readings a frame of the load has.
const readingsPerFrame = 2

// frames measures accepting and storing beside the bare handler, Telegrafs that store the
// same in the same InfluxDB, and a gateway with embedded back ends.
func frames(ctx context.Context, b *bench) error {
	floor, err := b.bare(ctx)
	if err != nil {
		return err
	}
	g, err := b.gateway(ctx, options{})
	if err != nil {
		return err
	}
	measured := b.storing("gateway", g, b.sender(&g.target))
	subjects := []*subject{floor, measured}
	var telegrafs []*telegraf
	var own *gateway
	var embedded *subject
	if !b.embedded {
		if telegrafs, err = b.telegrafs(ctx, g); err != nil {
			return err
		}
		for _, t := range telegrafs {
			subjects = append(subjects, &t.subject)
		}
		if own, err = b.gateway(ctx, options{embedded: true}); err != nil {
			return err
		}
		embedded = b.storing("embedded", own, b.sender(&own.target))
		subjects = append(subjects, embedded)
	}
	if err := b.inTurns(ctx, subjects...); err != nil {
		return err
	}
	b.loads("frames, medians", subjects)
	t := b.table("frames", "found", "aim")
	t.compare(measured, floor, "accepted", outcome.acceptedRate, "≥ 0.41")
	t.compare(measured, floor, "stored", outcome.doneRate, "≥ 0.27")
	for i, one := range telegrafs {
		t.compare(measured, &one.subject, "accepted", outcome.acceptedRate, []string{"≥ 1.03", "≥ 6"}[i])
		t.compare(measured, &one.subject, "stored", outcome.doneRate, []string{"≥ 0.76", "≥ 6"}[i])
	}
	t.compare(embedded, measured, "stored", outcome.doneRate, "≥ 0.60")
	t.row("peak memory of the gateway, MiB", peakMemory(g.pid())>>20, fmt.Sprintf("≤ %d", maxLoadedMemory))
	if own != nil {
		t.row("embedded: bytes on disk for a reading, radio data included", own.readingsSize()/(readingsPerFrame*own.accepted.Load()), "")
	}
	t.Flush()
	for _, one := range telegrafs {
		if err := one.reportLost(ctx, b); err != nil {
			return err
		}
	}
	if own != nil {
		err = b.reconcileFrames(ctx, "frames with embedded back ends", own)
	}
	if err != nil {
		return err
	}
	return b.reconcileFrames(ctx, "frames", g)
}

// serveBare is the floor: the same framework, doing nothing.
func serveBare(addr string) error {
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Post("/*", func(c *fiber.Ctx) error {
		c.Status(fiber.StatusNoContent)
		return nil
	})
	return app.Listen(addr)
}

// bare starts the floor in a process of its own.
func (b *bench) bare(ctx context.Context) (*subject, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	t := &target{addr: servers.FreeAddr()}
	proc, err := b.Start(ctx, "bare", nil, self, "-bare", t.addr)
	if err != nil {
		return nil, err
	}
	return &subject{
		name: "bare handler, 204", cpu: func() usage { return usage{cpuProgram: cpu(proc.Process.Pid)} },
		round: func(ctx context.Context) (outcome, error) { return b.sender(t).run(ctx, b.seconds) },
	}, servers.Reachable(ctx, t.addr)
}

// readingsSize is the number of bytes that the embedded readings take on disk, the log of what
// was written last included.
func (g *gateway) readingsSize() (bytes int64) {
	files, _ := filepath.Glob(filepath.Join(g.dir, "readings", "readings.db*"))
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}
