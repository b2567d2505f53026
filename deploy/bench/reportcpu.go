package main

import (
	"fmt"
	"time"
)

// printCPU says what a frame and a message cost each of the processes.
func (r *report) printCPU(say func(format string, args ...any)) {
	if len(r.frames) > 0 {
		say("\nµs of CPU per frame: %s; cores in use during the load %.0f %%\n",
			cpuEach(each(r.frames, frameRound.load), "the load's client"), 100*median(r.frames, func(f frameRound) float64 { return f.busy }))
		r.printFrameCPU(say)
		say("the gateway's peak memory under frames: %d MiB, aim ≤ %d\n", r.memory>>20, aimLoadedMemory)
	}
	if len(r.relayed) > 0 {
		say("\nµs of CPU per message relayed: %s\n", cpuEach(each(r.relayed, relayRound.load), "client and sink"))
	}
	if len(r.sends) > 0 {
		say("\nµs of CPU per message sent: %s\n",
			cpuEach(each(r.sends, func(s sendRound) outcome { return s.load }), "client and SMSC"))
	}
}

// cpuEach is what each cost the servers and the client.
func cpuEach(all []outcome, client string) string {
	per := func(cpu func(outcome) time.Duration) string {
		return number(median(all, func(o outcome) float64 { return outcome{count: o.count, cpu: cpu(o)}.micros() }))
	}
	return fmt.Sprintf("gateway %s, PostgreSQL %s, Redis %s, InfluxDB %s, %s %s",
		per(func(o outcome) time.Duration { return o.cpu }), per(func(o outcome) time.Duration { return o.beside.postgres }),
		per(func(o outcome) time.Duration { return o.beside.redis }), per(func(o outcome) time.Duration { return o.beside.influx }),
		client, per(func(o outcome) time.Duration { return o.beside.client }))
}
