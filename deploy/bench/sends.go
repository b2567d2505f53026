package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/linxGnu/gosmpp"
	"github.com/linxGnu/gosmpp/data"
	"github.com/linxGnu/gosmpp/pdu"

	"github.com/penstock/penstock/deploy/servers"
)

const (
	// smppWindow is how many submissions may be without an answer, of the gateway
	// and of the raw client.
	smppWindow = 500
	// perOrder is how many destinations an order has.
	perOrder = 10
)

// smsc takes binds and submit_sm, and answers each at once with an id.
type smsc struct {
	listener net.Listener
	taken    atomic.Int64
}

func newSMSC() (s *smsc, err error) {
	s = &smsc{}
	s.listener, err = servers.Listen("127.0.0.1:0", s.talk)
	return s, err
}

// talk answers PDUs; the answers to what came together leave together.
func (s *smsc) talk(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	in, out := bufio.NewReaderSize(conn, 64<<10), bufio.NewWriterSize(conn, 64<<10)
	for {
		var head [16]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		if _, err := in.Discard(int(binary.BigEndian.Uint32(head[:4])) - 16); err != nil {
			return
		}
		command := binary.BigEndian.Uint32(head[4:])
		if command&0x80000000 != 0 {
			continue
		}
		body := []byte{0}
		if command == uint32(data.SUBMIT_SM) {
			body = append(strconv.AppendInt(nil, s.taken.Add(1), 16), 0)
		} else if command == uint32(data.ENQUIRE_LINK) || command == uint32(data.UNBIND) {
			body = nil
		}
		answer := binary.BigEndian.AppendUint32(nil, uint32(16+len(body)))
		answer = binary.BigEndian.AppendUint32(answer, command|0x80000000)
		answer = append(append(answer, 0, 0, 0, 0), head[12:]...)
		_, _ = out.Write(append(answer, body...))
		if in.Buffered() == 0 && out.Flush() != nil {
			return
		}
	}
}

// sendRound is a run of messages through the gateway.
type sendRound struct {
	raw      float64 // submit_sm a second of the raw client
	accepted float64 // messages a second that the gateway took
	live     float64 // submit_sm a second from the first order to the last answer
	drained  float64 // submit_sm a second of messages that were queued before
	load     outcome // from the first order to the last answer
}

// sends measures messages from the order to the SMSC's answer, in turns with
// gosmpp's own client that submits the same to the same SMSC, which does nothing but
// answer.
func sends(ctx context.Context, p *peers, s settings, r *report) error {
	idle, err := newSMSC()
	if err != nil {
		return err
	}
	defer func() { _ = idle.listener.Close() }()
	r.sends, err = p.sendsTo(ctx, idle.listener.Addr().String(), s, r)
	return err
}

// sendsTo measures against an SMSC.
func (p *peers) sendsTo(ctx context.Context, addr string, s settings, r *report) (rounds []sendRound, err error) {
	p.config = filepath.Join(p.Dir, "sends.yaml")
	defer func() { p.config = "" }()
	text := fmt.Sprintf("carriers:\n  - {type: smpp, name: far, addr: %q, system_id: bench, password: secret, window: %d}\n", addr, smppWindow)
	if err := os.WriteFile(p.config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	d, err := p.daemon(ctx, s)
	if err != nil {
		return nil, err
	}
	defer d.stop()
	n := int64(s.sends / s.rounds)
	for range s.rounds {
		raw, err := rawSubmits(addr, n)
		if err != nil {
			return nil, err
		}
		round, err := d.sendRound(ctx, n, s)
		if err != nil {
			return nil, err
		}
		round.raw = raw
		rounds = append(rounds, round)
	}
	r.reconcile("submissions", 2*n*int64(s.rounds), d.submitted(), 0)
	return rounds, nil
}

// submitted is how many messages the carrier has answered for.
func (d *daemon) submitted() int64 {
	return d.metric(`penstock_carrier_sending_accepted_total{carrier="far"}`)
}

func (d *daemon) awaitSubmitted(ctx context.Context, n int64) error {
	return servers.Until(ctx, 2*time.Minute, fmt.Sprintf("%d messages at the SMSC", n), func() bool { return d.submitted() >= n })
}

func (d *daemon) sendRound(ctx context.Context, n int64, s settings) (r sendRound, err error) {
	base, start, before, beside := d.submitted(), time.Now(), cpu(d.pid()), d.used()
	if err := d.order(ctx, n, "", s); err != nil {
		return r, err
	}
	r.accepted = float64(n) / time.Since(start).Seconds()
	if err := d.awaitSubmitted(ctx, base+n); err != nil {
		return r, err
	}
	r.live = float64(n) / time.Since(start).Seconds()
	r.load = outcome{count: n, cpu: cpu(d.pid()) - before, beside: d.used().since(beside)}
	due := time.Now().Add(time.Duration(float64(n)/r.accepted*float64(time.Second))*2 + 2*time.Second).Truncate(time.Second).Add(time.Second)
	if err := d.order(ctx, n, due.UTC().Format(time.DateTime), s); err != nil {
		return r, err
	}
	if d.submitted() > base+n {
		return r, errors.New("messages left before they were all queued")
	}
	if err := d.awaitSubmitted(ctx, base+n+1); err != nil {
		return r, err
	}
	began, left := time.Now(), base+2*n-d.submitted()
	if err := d.awaitSubmitted(ctx, base+2*n); err != nil {
		return r, err
	}
	r.drained = float64(left) / time.Since(began).Seconds()
	return r, nil
}

// order orders messages over as many connections as the load has.
func (d *daemon) order(ctx context.Context, n int64, at string, s settings) error {
	client := newClient(s.conns)
	defer client.CloseIdleConnections()
	return spread(s, span{0, n / perOrder}, func(i int64) error {
		return d.sendOrder(ctx, client, i*perOrder, at)
	})
}

// sendOrder sends a message to perOrder numbers from the first on, at a time or, if that
// is empty, at once.
func (d *daemon) sendOrder(ctx context.Context, client *http.Client, first int64, at string) error {
	numbers := make([]string, perOrder)
	for n := range numbers {
		numbers[n] = fmt.Sprintf("4477%06d00", first+int64(n))
	}
	req, err := jsonPost(ctx, "http://"+d.addr+"/v2/sms/send",
		map[string]any{"destinations": numbers, "message": sentText, "originator": "Bench", "send_time": at})
	if err != nil {
		return err
	}
	req.Header.Set("X-Auth-Token", d.token)
	return answered(client, req, http.StatusOK, nil)
}

// rawSubmits is the rate of gosmpp's client, with a window as large as the
// gateway's.
func rawSubmits(addr string, n int64) (float64, error) {
	window, failed := make(chan struct{}, smppWindow), make(chan error, 1)
	session, err := gosmpp.NewSession(
		gosmpp.TRXConnector(gosmpp.NonTLSDialer, gosmpp.Auth{SMSC: addr, SystemID: "bench", Password: "secret"}),
		gosmpp.Settings{
			ReadTimeout: time.Minute, EnquireLink: 30 * time.Second,
			OnPDU: func(p pdu.PDU, _ bool) {
				if _, ok := p.(*pdu.SubmitSMResp); ok {
					<-window
				}
			},
			OnClosed: func(s gosmpp.State) { // its halves may each say so
				select {
				case failed <- fmt.Errorf("gosmpp: the session ended: %v", s):
				default:
				}
			},
		}, -1)
	if err != nil {
		return 0, err
	}
	defer func() { _ = session.Close() }()
	start, late := time.Now(), time.After(time.Minute)
	for i := range n + smppWindow { // once the window is full again, all n are answered
		select {
		case window <- struct{}{}:
		case err := <-failed:
			return 0, err
		case <-late:
			return 0, errors.New("gosmpp: the SMSC does not answer")
		}
		if i >= n {
			continue
		}
		if err := session.Transceiver().Submit(rawMessage(i)); err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(start).Seconds(), nil
}

func rawMessage(i int64) pdu.PDU {
	p := pdu.NewSubmitSM().(*pdu.SubmitSM)
	_ = p.SourceAddr.SetAddress("Bench")
	_ = p.DestAddr.SetAddress(fmt.Sprintf("4477%06d00", i))
	p.RegisteredDelivery = 1
	_ = p.Message.SetMessageWithEncoding(sentText, data.GSM7BIT)
	return p
}

// sentText is the text of the messages.
const sentText = "a message of some forty characters, about"

// printSends compares the medians of the rounds.
func (r *report) printSends(say func(format string, args ...any)) {
	if len(r.sends) == 0 {
		return
	}
	of := func(f func(sendRound) float64) float64 { return median(r.sends, f) }
	say("messages sent to an SMSC that only answers, medians of %d rounds of %d, window %d: gosmpp's own client submits %.0f/s; the gateway accepts %.0f/s, submits %.0f/s meanwhile and %.0f/s of what is queued; ratios %.2f and %.2f\n",
		len(r.sends), r.settings.sends/r.settings.rounds, smppWindow,
		of(func(s sendRound) float64 { return s.raw }), of(func(s sendRound) float64 { return s.accepted }),
		of(func(s sendRound) float64 { return s.live }), of(func(s sendRound) float64 { return s.drained }),
		of(func(s sendRound) float64 { return s.live / s.raw }),
		of(func(s sendRound) float64 { return s.drained / s.raw }))
}
