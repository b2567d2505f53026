package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

const (
	aimApplied = 1 << 30
	// appliedAtOnce is how many SIMs a document has: none has more than 8 MiB.
	appliedAtOnce = 20_000
)

// applied is many SIMs, given in documents to a gateway with embedded back ends.
type applied struct {
	sims           int
	took, last     time.Duration // of all documents, and of the last one
	most, resident int64         // bytes that the gateway held at most, and at the end
	restart        time.Duration
}

// measureApplied gives documents to a gateway and starts it again.
func measureApplied(ctx context.Context, p *peers, s settings, r *report) error {
	s.embedded = true
	d, err := p.daemon(ctx, s)
	if err != nil {
		return err
	}
	defer d.stop()
	acct, a, start := simAccount{account: 1, n: s.applied}, &applied{sims: s.applied}, time.Now()
	for from := 0; from < acct.n; from += appliedAtOnce {
		began := time.Now()
		if err := d.applySIMs(ctx, s, acct, from, min(from+appliedAtOnce, acct.n)); err != nil {
			return err
		}
		a.last = time.Since(began)
	}
	a.took, a.most = time.Since(start), memory(d.pid())
	start = time.Now()
	if err := d.restart(ctx, s); err != nil {
		return err
	}
	a.restart, a.resident = time.Since(start), d.resident()
	r.applied = a
	return nil
}

// applySIMs gives a document to the gateway.
func (d *daemon) applySIMs(ctx context.Context, s settings, acct simAccount, from, to int) error {
	file := filepath.Join(d.dir, "sims.yaml")
	if err := writeSIMs(file, acct, from, to); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, s.binary, "apply", "--file", file)
	cmd.Env = append(os.Environ(), d.env...)
	if err := d.peers.Launch("apply", cmd); err != nil {
		return err
	}
	return servers.Explain(cmd, cmd.Wait())
}

// writeSIMs writes a document of its own name with some SIMs of an account.
func writeSIMs(file string, acct simAccount, from, to int) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	w := bufio.NewWriter(f)
	_, _ = fmt.Fprintf(w, "document: sims-%d\naccounts:\n  - name: many\n    sims:\n", from)
	for i := from; i < to; i++ {
		_, _ = fmt.Fprintf(w, "      - {iccid: %q, imsi: %q, msisdn: %q, pin: \"1234\", puk: \"12345678\"}\n", acct.iccid(i), acct.imsi(i), acct.msisdn(i))
	}
	return w.Flush()
}

func (r *report) printApplied(say func(format string, args ...any)) {
	if a := r.applied; a != nil {
		say("%d SIMs given to a gateway with embedded back ends in documents of %d: in %v, the last one in %v, with %d MiB at most (aim %d); started again in %v, then %d MiB\n",
			a.sims, appliedAtOnce, a.took.Round(time.Second), a.last.Round(time.Millisecond), a.most>>20, aimApplied>>20, a.restart.Round(time.Millisecond), a.resident>>20)
	}
}
