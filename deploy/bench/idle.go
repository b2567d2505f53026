package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// idleFor is the time that a gateway is idle until its memory and CPU time are read.
const idleFor = 30 * time.Second

// idle measures starts of gateways for which nothing is configured, in empty directories,
// and what the last one takes when it has nothing to do.
func idle(ctx context.Context, b *bench) error {
	info, err := os.Stat(b.binary)
	if err != nil {
		return err
	}
	var starts, ticks []float64
	var pid int
	for n := range b.rounds {
		addr, start := servers.FreeAddr(), time.Now()
		dir := filepath.Join(b.Dir, fmt.Sprint("idle", n))
		cmd, err := b.Start(ctx, "idle", []string{"PENSTOCK_LISTEN=" + addr, "PENSTOCK_DATA_DIR=" + dir}, b.binary, "serve")
		if err != nil {
			return err
		}
		if err := servers.Explain(cmd, ready(ctx, addr)); err != nil {
			return err
		}
		pid = cmd.Process.Pid
		starts, ticks = append(starts, float64(time.Since(start))), append(ticks, float64(cpu(pid)))
		if n < b.rounds-1 {
			servers.End(cmd)
		}
	}
	used := cpu(pid)
	sleep(ctx, idleFor)
	t := b.table("embedded and empty", "found", "aim")
	defer t.Flush()
	t.row("ready after, median", time.Duration(median(starts)), "≤ 300ms")
	t.row("CPU time until then", time.Duration(median(ticks)), "")
	t.row("memory after "+idleFor.String()+", MiB", resident(pid)>>20, "≤ 70")
	t.row("CPU while idle, % of a core", 100*(cpu(pid)-used).Seconds()/idleFor.Seconds(), "≤ 0.30")
	t.row("the program, MB", float64(info.Size())/1e6, "≤ 66")
	return nil
}
