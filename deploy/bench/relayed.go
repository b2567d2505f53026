package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// sink is the endpoint of a relay: it answers 200 and remembers which messages
// came, and how often.
type sink struct {
	server *http.Server
	addr   string
	hits   atomic.Int64
	mu     sync.Mutex
	seen   map[string]int
}

func newSink() (*sink, error) {
	s := &sink{seen: make(map[string]int)}
	var err error
	s.server, s.addr, err = servers.Serve("127.0.0.1:0", s)
	return s, err
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("m")
	s.mu.Lock()
	s.seen[id]++
	s.mu.Unlock()
	s.hits.Add(1)
	_, _ = io.WriteString(w, "ok")
}

// counts returns how many messages came and how many came again.
func (s *sink) counts() (messages, again int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.seen)), s.hits.Load() - int64(len(s.seen))
}

// relayed measures inbound messages from the carrier's post to the sink, in turns
// with the rate at which a bare client makes the same GETs, with Kannel, and with a
// gateway that has embedded back ends.
func relayed(ctx context.Context, p *peers, s settings, r *report) error {
	floor, err := newSink()
	if err != nil {
		return err
	}
	defer func() { _ = floor.server.Close() }()
	target, err := newSink()
	if err != nil {
		return err
	}
	defer func() { _ = target.server.Close() }()
	p.sink = target.addr
	d, err := p.daemon(ctx, s)
	if err != nil {
		return err
	}
	defer d.stop()
	besides, err := p.relayPeers(ctx, s, r)
	if err != nil {
		return err
	}
	defer besides.stop()
	part := s.messages / s.rounds
	for round := range s.rounds {
		numbers := span{first: int64(round * part), end: int64((round + 1) * part)}
		gets, err := bareGets(ctx, floor.addr, numbers, s)
		if err != nil {
			return err
		}
		relay, err := d.relay(ctx, target, numbers, s)
		if err != nil {
			return err
		}
		r.bareGets, r.relayed = append(r.bareGets, gets), append(r.relayed, relay)
		if err := besides.round(ctx, numbers, s, r); err != nil {
			return err
		}
	}
	messages, again := target.counts()
	r.again = again
	r.reconcile("messages", int64(s.rounds*part), messages, d.metric("penstock_quarantined_total{kind=\"sms\"}"))
	besides.reconcile(r, int64(s.rounds*part))
	return nil
}

// relayRound is a run of messages, and how long until the last was accepted.
type relayRound struct {
	outcome
	accepted time.Duration
}

func (r relayRound) load() outcome { return r.outcome }

func (r relayRound) acceptedRate() float64 { return float64(r.count) / r.accepted.Seconds() }

// relay posts messages and waits for the last one at the sink.
func (d *daemon) relay(ctx context.Context, target *sink, numbers span, s settings) (r relayRound, err error) {
	start, before, beside := time.Now(), cpu(d.pid()), d.used()
	if err := postMessages(ctx, d, numbers, s); err != nil {
		return r, err
	}
	r.accepted = time.Since(start)
	if err := servers.Until(ctx, 5*time.Minute, "every message at the sink", func() bool {
		n, _ := target.counts()
		return n == numbers.end
	}); err != nil {
		return r, err
	}
	r.outcome = outcome{count: numbers.end - numbers.first, took: time.Since(start), cpu: cpu(d.pid()) - before, beside: d.used().since(beside)}
	return r, nil
}

// span is the numbers of some messages.
type span struct{ first, end int64 }

// messageText identifies the n-th message at the sink.
func messageText(n int64) string { return fmt.Sprintf("message %d & more", n) }

func bareGets(ctx context.Context, addr string, numbers span, s settings) (outcome, error) {
	client := newClient(s.conns)
	start := time.Now()
	err := spread(s, numbers, func(n int64) error {
		q := "m=" + url.QueryEscape(messageText(n)) + "&o=447700900123&d=447800012345"
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/sms?"+q, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return err
	})
	return outcome{count: numbers.end - numbers.first, took: time.Since(start)}, err
}

// spread calls do for every message, over all connections.
func spread(s settings, numbers span, do func(n int64) error) error {
	var next atomic.Int64
	next.Store(numbers.first)
	errs := make([]error, s.conns)
	var wg sync.WaitGroup
	for i := range s.conns {
		wg.Go(func() {
			for n := next.Add(1) - 1; n < numbers.end && errs[i] == nil; n = next.Add(1) - 1 {
				errs[i] = do(n)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func postMessages(ctx context.Context, d *daemon, numbers span, s settings) error {
	client := newClient(s.conns)
	return spread(s, numbers, func(n int64) error {
		return post(ctx, client, d, fmt.Sprintf("b%d", n), "447800012345", messageText(n))
	})
}

// post hands over one message as a carrier does.
func post(ctx context.Context, client *http.Client, d *daemon, id, to, text string) error {
	body := fmt.Sprintf(`{"id":%q,"from":"447700900123","to":%q,"text":%q}`, id, to, text)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.addr+"/inbound/sms/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+d.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("message %s: %s", id, resp.Status)
	}
	return nil
}
