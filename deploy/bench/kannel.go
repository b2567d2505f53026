package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// What relaying is meant to show beside Kannel and with embedded back ends.
const (
	aimKannel          = 2.0 // of messages relayed a second
	aimEmbeddedRelayed = 0.5 // of those with PostgreSQL and Redis
)

// kannel is a bearerbox with a spool on disk and a smsbox that makes the same GETs as
// a relay. A simulated carrier, fakesmsc, hands it messages.
type kannel struct {
	peers             *peers
	bearerbox, smsbox *exec.Cmd
	fakesmsc, dir     string
	carrier           string // the address for carriers
	target            *sink
}

// kannelPrograms finds Kannel's programs, which deploy/test-deps.sh installs outside
// the PATH.
func kannelPrograms() (map[string]string, error) {
	found := make(map[string]string)
	for name, folder := range map[string]string{"bearerbox": "/usr/sbin", "smsbox": "/usr/sbin", "fakesmsc": "/usr/lib/kannel/test"} {
		path, err := exec.LookPath(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		found[name] = path
	}
	return found, nil
}

// kannel starts both boxes.
func (p *peers) kannel(ctx context.Context, target *sink) (*kannel, error) {
	programs, err := kannelPrograms()
	if err != nil {
		return nil, err
	}
	k := &kannel{peers: p, fakesmsc: programs["fakesmsc"], dir: filepath.Join(p.Dir, "kannel"), carrier: servers.FreeAddr(), target: target}
	if err := os.MkdirAll(filepath.Join(k.dir, "spool"), 0o700); err != nil {
		return nil, err
	}
	port := func(addr string) string { _, port, _ := net.SplitHostPort(addr); return port }
	boxes, config := servers.FreeAddr(), filepath.Join(k.dir, "kannel.conf")
	text := fmt.Sprintf(kannelConfig, port(servers.FreeAddr()), port(boxes), filepath.Join(k.dir, "spool"), port(k.carrier), port(servers.FreeAddr()), target.addr)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	if k.bearerbox, err = p.Start(ctx, "bearerbox", nil, programs["bearerbox"], config); err != nil {
		return nil, err
	}
	if err := servers.Explain(k.bearerbox, servers.Reachable(ctx, boxes)); err != nil {
		return nil, err
	}
	if k.smsbox, err = p.Start(ctx, "smsbox", nil, programs["smsbox"], config); err != nil {
		return nil, err
	}
	return k, servers.Explain(k.bearerbox, servers.Until(ctx, servers.StartTime, "the smsbox at the bearerbox", func() bool {
		return bytes.Contains([]byte(servers.Said(k.bearerbox)), []byte("Client connected from <127.0.0.1>"))
	}))
}

const kannelConfig = `group = core
admin-port = %s
admin-password = secret
smsbox-port = %s
store-type = spool
store-location = %q
log-level = 1

group = smsc
smsc = fake
smsc-id = fake
port = %s
connect-allow-ip = 127.0.0.1

group = smsbox
bearerbox-host = 127.0.0.1
sendsms-port = %s
log-level = 3

group = sms-service
keyword = default
get-url = "http://%s/sms?m=%%a&o=%%p&d=%%P"
max-messages = 0
`

// relay hands messages over as fast as they are taken, and waits for the last one at
// the sink.
func (k *kannel) relay(ctx context.Context, numbers span) (outcome, error) {
	var lines bytes.Buffer
	for n := numbers.first; n < numbers.end; n++ {
		fmt.Fprintf(&lines, "447700900123 447800012345 text %s\n", messageText(n))
	}
	_, port, _ := net.SplitHostPort(k.carrier)
	count := numbers.end - numbers.first
	cmd := exec.CommandContext(ctx, k.fakesmsc, "-H", "127.0.0.1", "-r", port, "-i", "0", "-m", fmt.Sprint(count))
	cmd.Stdin = &lines
	start, before := time.Now(), k.cpu()
	if err := k.peers.Launch("fakesmsc", cmd); err != nil {
		return outcome{}, err
	}
	defer servers.End(cmd)
	if err := servers.Explain(cmd, servers.Until(ctx, 5*time.Minute, "every message at Kannel's sink", func() bool {
		n, _ := k.target.counts()
		return n >= numbers.end
	})); err != nil {
		return outcome{}, err
	}
	return outcome{count: count, took: time.Since(start), cpu: k.cpu() - before}, nil
}

func (k *kannel) cpu() time.Duration {
	return cpuWithChildren(k.bearerbox.Process.Pid) + cpuWithChildren(k.smsbox.Process.Pid)
}

// relayPeers receive messages beside the gateway that is measured.
type relayPeers struct {
	kannel   *kannel
	embedded *daemon
	sinks    []*sink
}

// relayPeers starts what there can be: where Kannel is not installed it is left out
// with a word.
func (p *peers) relayPeers(ctx context.Context, s settings, r *report) (*relayPeers, error) {
	f := &relayPeers{}
	for range 2 {
		one, err := newSink()
		if err != nil {
			return nil, err
		}
		f.sinks = append(f.sinks, one)
	}
	var err error
	if f.kannel, err = p.kannel(ctx, f.sinks[0]); err != nil {
		r.noKannel = oneLine(err)
	}
	if s.embedded {
		return f, nil
	}
	s.embedded, p.sink = true, f.sinks[1].addr
	f.embedded, err = p.daemon(ctx, s)
	return f, err
}

func (f *relayPeers) round(ctx context.Context, numbers span, s settings, r *report) error {
	if f.kannel != nil {
		o, err := f.kannel.relay(ctx, numbers)
		if err != nil {
			return err
		}
		r.kannel = append(r.kannel, o)
	}
	if f.embedded != nil {
		o, err := f.embedded.relay(ctx, f.sinks[1], numbers, s)
		if err != nil {
			return err
		}
		r.embeddedRelayed = append(r.embeddedRelayed, o)
	}
	return nil
}

// reconcile compares what was sent with what came to the sink of the embedded one.
func (f *relayPeers) reconcile(r *report, sent int64) {
	if f.embedded != nil {
		messages, again := f.sinks[1].counts()
		r.again += again
		r.reconcile("messages with embedded back ends", sent, messages, 0)
	}
}

func (f *relayPeers) stop() {
	if f.embedded != nil {
		f.embedded.stop()
	}
	for _, one := range f.sinks {
		_ = one.server.Close()
	}
}

// printRelayPeers prints a row each, with ratios to the bare client, and the ratios
// that are aimed at.
func (r *report) printRelayPeers(row func(cells ...any)) {
	relayed, embedded := each(r.relayed, relayRound.load), each(r.embeddedRelayed, relayRound.load)
	for _, one := range []struct {
		name   string
		rounds []outcome
	}{{"relayed, embedded back ends", embedded}, {"relayed by Kannel, spool", r.kannel}} {
		if len(one.rounds) > 0 {
			row(one.name, rate(median(one.rounds, outcome.rate)), ratio(rates(one.rounds, r.bareGets)), "", number(median(one.rounds, outcome.micros)), "", "")
		}
	}
	if len(r.kannel) > 0 {
		row("relayed / Kannel's", "", ratio(rates(relayed, r.kannel)), aim(aimKannel), "", "", "")
	}
	if len(embedded) > 0 {
		row("relayed, embedded / with PostgreSQL", "", ratio(rates(embedded, relayed)), aim(aimEmbeddedRelayed), "", "", "")
	}
	if r.noKannel != "" {
		row("without Kannel: "+r.noKannel, "", "", "", "", "", "")
	}
}

// rates is the median of rates beside others of the same rounds.
func rates(rounds, others []outcome) float64 {
	all := make([]float64, len(rounds))
	for i := range all {
		all[i] = rounds[i].rate() / others[i].rate()
	}
	return median(all, same)
}
