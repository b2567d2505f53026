package main

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// How a soak is done: frames at this rate, with a journal that may keep this much.
const (
	soakRate     = 3000
	soakJournal  = 256 << 20
	soakSettles  = 10 // this part of the time passes before memory counts
	aimFlat      = 0.10
	soakSampling = time.Second
)

// soaked are the results of a long load on a gateway with embedded back ends.
type soaked struct {
	took              time.Duration
	frames            int64
	resident          []int64 // each second, once it has settled
	journal, readings int64   // the most of one, the size of the other at the end
}

// measureSoak loads a gateway for a long time and watches its memory and its disk.
func measureSoak(ctx context.Context, p *peers, s settings, r *report) error {
	s.embedded = true
	p.env = []string{"PENSTOCK_JOURNAL_MAX_BYTES=256MiB"}
	d, err := p.site(ctx, s)
	p.env = nil
	if err != nil {
		return err
	}
	defer d.stop()
	found := &soaked{took: s.soak}
	watched, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { found.watch(watched, d.daemon, s.soak/soakSettles) })
	t, err := d.run(ctx, d.sender(s.conns, soakRate), s.soak)
	stop()
	wg.Wait()
	if err != nil {
		return err
	}
	if err := d.settle(ctx); err != nil {
		return err
	}
	found.frames, found.readings = t.accepted, d.readingsSize()
	r.reconcile("frames of the soak", d.acceptedSum, d.metric("penstock_accepted_total{kind=\"uplink\"}"), t.refused)
	r.soaked = found
	return nil
}

// watch looks at the memory and the journal until ctx ends.
func (k *soaked) watch(ctx context.Context, d *daemon, settles time.Duration) {
	start := time.Now()
	for sleep(ctx, soakSampling) {
		if time.Since(start) >= settles {
			k.resident = append(k.resident, d.resident())
		}
		k.journal = max(k.journal, treeSize(filepath.Join(d.dir, "journal")))
	}
}

// treeSize is how many bytes the files of a directory have; those that vanish
// meanwhile have none.
func treeSize(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if info, err := e.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil
	})
	return bytes
}

// fifths are the medians of the memory in each fifth of the time.
func (k *soaked) fifths() (out []float64) {
	part := max(1, len(k.resident)/5)
	for some := range slices.Chunk(k.resident, part) {
		if len(some) == part {
			out = append(out, median(some, func(n int64) float64 { return float64(n >> 20) }))
		}
	}
	return out
}

func (r *report) printSoaked(say func(format string, args ...any)) {
	k := r.soaked
	if k == nil || len(k.resident) == 0 {
		return
	}
	all := k.fifths()
	say("a soak of %v with embedded back ends, %d frames a second, %d in all: resident in each fifth of the time %.0f MiB, last / first %.2f (aim within %.0f %%), most %d MiB; "+
		"the journal had %d MiB at most (its bound %d and a segment), the readings %d MiB at the end, %.0f bytes each\n",
		k.took, soakRate, k.frames, all, all[len(all)-1]/all[0], 100*aimFlat, slices.Max(k.resident)>>20,
		k.journal>>20, soakJournal>>20, k.readings>>20, float64(k.readings)/float64(readingsAFrame*k.frames))
}
