package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// relayPatience is the time within which all messages of a round must arrive.
const relayPatience = 5 * time.Minute

// sink is the endpoint of a relay. It answers 200 and counts requests and messages.
type sink struct {
	addr  string
	mu    sync.Mutex
	hits  int64           // requests
	texts map[string]bool // of the messages
}

func newSink() (s *sink, err error) {
	s = &sink{texts: make(map[string]bool)}
	_, s.addr, err = servers.Serve("127.0.0.1:0", s)
	return s, err
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("m")
	s.mu.Lock()
	s.texts[text] = true
	s.hits++
	s.mu.Unlock()
	_, _ = io.WriteString(w, "ok")
}

// counts returns the number of messages and the number of repeated requests.
func (s *sink) counts() (messages, repeated int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.texts)), s.hits - int64(len(s.texts))
}

// relaying is a subject that relays messages to a sink of its own.
type relaying struct {
	subject
	sink *sink
	sent int64
}

// relaying returns a subject that relays an equal share of b.messages in each round. post
// sends the messages with the numbers from start to end-1.
func (b *bench) relaying(name string, endpoint *sink, cpu func() usage, post func(ctx context.Context, start, end int64) error) *relaying {
	r := &relaying{subject: subject{name: name, cpu: cpu}, sink: endpoint}
	r.round = func(ctx context.Context) (outcome, error) {
		sentBefore, start := r.sent, time.Now()
		r.sent += int64(b.messages / (b.rounds + 1))
		if err := post(ctx, sentBefore, r.sent); err != nil {
			return outcome{}, err
		}
		return outcome{count: r.sent - sentBefore, accepted: time.Since(start)}, r.await(ctx)
	}
	return r
}

// await waits until every message has reached the sink.
func (r *relaying) await(ctx context.Context) error {
	return servers.Until(ctx, relayPatience, "every message to reach the sink", func() bool {
		messages, _ := r.sink.counts()
		return messages == r.sent
	})
}

// relayed measures how fast inbound messages are relayed from the carrier's POST to the sink, in
// turns with Kannel.
func relayed(ctx context.Context, b *bench) error {
	endpoint, err := newSink()
	if err != nil {
		return err
	}
	g, err := b.gateway(ctx, options{sink: endpoint.addr})
	if err != nil {
		return err
	}
	client := newClient(b.conns)
	measured := b.relaying("gateway", endpoint, g.cpu, func(ctx context.Context, start, end int64) error {
		return b.spread(start, end, func(n int64) error {
			body := fmt.Sprintf(`{"id":"b%d","from":"447700900123","to":"447800012345","text":%q}`, n, messageText(n))
			return call(ctx, client, http.MethodPost, g.url("/inbound/sms/json"), accountToken, body, nil)
		})
	})
	subjects := []*subject{&measured.subject}
	var kannel *subject
	if r, err := b.kannelRelaying(ctx); err != nil {
		fmt.Fprintf(b.w, "without Kannel: %v\n", err)
	} else {
		kannel = &r.subject
		subjects = append(subjects, kannel)
	}
	if err := b.inTurns(ctx, subjects...); err != nil {
		return err
	}
	b.loads("messages relayed, medians", subjects)
	t := b.table("messages relayed", "found", "aim")
	t.compare(&measured.subject, kannel, "relayed", outcome.doneRate, "≥ 2")
	messages, repeated := measured.sink.counts()
	t.row("repeated messages at the sink", repeated, "")
	t.Flush()
	b.reconcile("messages", measured.sent, messages, 0)
	return nil
}

// messageText returns the text of the n-th message, which identifies it at the sink.
func messageText(n int64) string { return fmt.Sprintf("message %d & more", n) }

// kannelRelaying starts a Kannel whose smsbox makes the same GETs as a relay. Kannel's simulated
// carrier, fakesmsc, delivers messages as fast as Kannel reads them.
func (b *bench) kannelRelaying(ctx context.Context) (*relaying, error) {
	endpoint, err := newSink()
	if err != nil {
		return nil, err
	}
	carrier := servers.FreeAddr()
	k, err := b.kannel(ctx, fmt.Sprintf(kannelRelay, port(carrier), endpoint.addr))
	if err != nil {
		return nil, err
	}
	var r *relaying
	r = b.relaying("Kannel, spool", endpoint, k.cpu, func(ctx context.Context, start, end int64) error {
		var lines strings.Builder
		for n := start; n < end; n++ {
			fmt.Fprintf(&lines, "447700900123 447800012345 text %s\n", messageText(n))
		}
		fakesmsc := exec.CommandContext(ctx, kannelFakeSMSC, "-H", "127.0.0.1", "-r", port(carrier), "-i", "0", "-m", fmt.Sprint(end-start))
		fakesmsc.Stdin = strings.NewReader(lines.String())
		if err := b.Launch("fakesmsc", fakesmsc); err != nil {
			return err
		}
		defer servers.End(fakesmsc) // Kannel accepts one connection at a time
		return servers.Explain(fakesmsc, r.await(ctx))
	})
	return r, nil
}
