package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/linxGnu/gosmpp/data"

	"github.com/penstock/penstock/deploy/servers"
)

const (
	// smppWindow is the maximum number of unanswered submissions.
	smppWindow = 500
	// perOrder is the number of destinations of an order.
	perOrder = 10
	// sentText is the text of the messages.
	sentText = "a message of some forty characters, about"
)

// smsc is an SMSC that answers every PDU at once, submit_sm with a message id.
type smsc struct {
	addr        string
	submissions atomic.Int64
}

func newSMSC() (*smsc, error) {
	s := &smsc{}
	l, err := servers.Listen("127.0.0.1:0", s.talk)
	if err == nil {
		s.addr = l.Addr().String()
	}
	return s, err
}

// talk answers the PDUs of a connection. It flushes its answers when no request is buffered, so
// that answers to requests that arrived together are sent together.
func (s *smsc) talk(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	requests, answers := bufio.NewReaderSize(conn, 64<<10), bufio.NewWriterSize(conn, 64<<10)
	for {
		var head [16]byte
		if _, err := io.ReadFull(requests, head[:]); err != nil {
			return
		}
		if _, err := requests.Discard(int(binary.BigEndian.Uint32(head[:4])) - 16); err != nil {
			return
		}
		command := binary.BigEndian.Uint32(head[4:])
		if command&0x80000000 != 0 {
			continue
		}
		body := []byte{0}
		if command == uint32(data.SUBMIT_SM) {
			body = append(strconv.AppendInt(nil, s.submissions.Add(1), 16), 0)
		} else if command == uint32(data.ENQUIRE_LINK) || command == uint32(data.UNBIND) {
			body = nil
		}
		answer := binary.BigEndian.AppendUint32(nil, uint32(16+len(body)))
		answer = binary.BigEndian.AppendUint32(answer, command|0x80000000)
		answer = append(append(answer, 0, 0, 0, 0), head[12:]...)
		_, _ = answers.Write(append(answer, body...))
		if requests.Buffered() == 0 && answers.Flush() != nil {
			return
		}
	}
}

// sends measures messages from the order to the answer of an SMSC that only answers, in turns
// with Kannel, whose orders have as many destinations.
func sends(ctx context.Context, b *bench) error {
	g, measured, err := b.gatewaySending(ctx, options{})
	if err != nil {
		return err
	}
	subjects := []*subject{measured}
	kannel, err := b.kannelSending(ctx)
	if err != nil {
		fmt.Fprintf(b.w, "without Kannel: %v\n", err)
	} else {
		subjects = append(subjects, kannel)
	}
	if err := b.inTurns(ctx, subjects...); err != nil {
		return err
	}
	b.loads(fmt.Sprintf("messages sent to an SMSC that only answers, window %d, medians", smppWindow), subjects)
	t := b.table("messages sent", "found", "aim")
	t.compare(measured, kannel, "accepted", outcome.acceptedRate, "≥ 4")
	t.compare(measured, kannel, "submitted", outcome.doneRate, "≥ 4")
	t.Flush()
	b.reconcile("submissions", b.ordersPerRound()*perOrder*int64(b.rounds+1), g.submitted(ctx), 0)
	return nil
}

// gatewaySending starts a gateway that submits messages to an SMSC of its own, and returns it
// with the subject that orders the messages.
func (b *bench) gatewaySending(ctx context.Context, o options) (*gateway, *subject, error) {
	far, err := newSMSC()
	if err != nil {
		return nil, nil, err
	}
	o.carriers = fmt.Sprintf("carriers:\n  - {type: smpp, name: far, addr: %q, system_id: bench, password: secret, window: %d}\n", far.addr, smppWindow)
	g, err := b.gateway(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	client := newClient(b.conns)
	return g, b.sending("gateway", g.cpu, g.submitted, func(ctx context.Context, numbers []string) error {
		return postJSON(ctx, client, g.url("/v2/sms/send"), accountToken, map[string]any{"destinations": numbers, "message": sentText, "originator": "Bench"}, nil)
	}), nil
}

func (g *gateway) submitted(ctx context.Context) int64 {
	return g.metric(ctx, `penstock_carrier_parts_accepted_total{carrier="far"}`)
}

// ordersPerRound returns the number of orders of a round.
func (b *bench) ordersPerRound() int64 { return int64(b.sends / (b.rounds + 1) / perOrder) }

// sending returns a subject that makes orders. A round is done when submitted, which counts
// messages that the SMSC accepted, has grown by all messages of the round.
func (b *bench) sending(name string, cpu func() usage, submitted func(context.Context) int64, order func(ctx context.Context, numbers []string) error) *subject {
	return &subject{name: name, cpu: cpu, round: func(ctx context.Context) (outcome, error) {
		base, start := submitted(ctx), time.Now()
		err := b.spread(0, b.ordersPerRound(), func(i int64) error {
			numbers := make([]string, perOrder)
			for n := range numbers {
				numbers[n] = fmt.Sprintf("4477%06d00", i*perOrder+int64(n))
			}
			return order(ctx, numbers)
		})
		if err != nil {
			return outcome{}, err
		}
		o := outcome{count: b.ordersPerRound() * perOrder, accepted: time.Since(start)}
		return o, servers.Until(ctx, relayPatience, "every message to reach the SMSC", func() bool { return submitted(ctx) >= base+o.count })
	}}
}

// kannelSending starts a Kannel that submits messages to an SMSC of its own.
func (b *bench) kannelSending(ctx context.Context) (*subject, error) {
	far, err := newSMSC()
	if err != nil {
		return nil, err
	}
	k, err := b.kannel(ctx, fmt.Sprintf(kannelSend, port(far.addr), smppWindow))
	if err != nil {
		return nil, err
	}
	if err := servers.Explain(k.smsbox, servers.Reachable(ctx, k.sendSMS)); err != nil {
		return nil, err
	}
	client := newClient(b.conns)
	return b.sending("Kannel, spool", k.cpu, func(context.Context) int64 { return far.submissions.Load() }, func(ctx context.Context, numbers []string) error {
		q := url.Values{"username": {"bench"}, "password": {"secret"}, "from": {"Bench"}, "to": {strings.Join(numbers, " ")}, "text": {sentText}}
		return call(ctx, client, http.MethodGet, "http://"+k.sendSMS+"/cgi-bin/sendsms?"+q.Encode(), "", "", nil)
	}), nil
}
