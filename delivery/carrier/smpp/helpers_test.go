package smpp

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/relaytest"
)

// smsc is an SMSC whose octets the test writes and reads.
type smsc struct {
	t *testing.T
	l net.Listener
}

func newSMSC(t *testing.T) *smsc {
	t.Helper()
	l := relaytest.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	return &smsc{t, l}
}

// peer is the SMSC's end of a connection.
type peer struct {
	t    *testing.T
	smsc *smsc
	conn net.Conn
	in   *bufio.Reader
}

// accept takes a connection and reads the bind, without answering it.
func (s *smsc) accept() (*peer, received) {
	s.t.Helper()
	late := time.AfterFunc(relaytest.Patience, func() { s.l.Close() })
	defer late.Stop()
	conn, err := s.l.Accept()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	p := &peer{s.t, s, conn, bufio.NewReader(conn)}
	return p, p.read()
}

// bound takes a connection and accepts the bind.
func (s *smsc) bound() *peer {
	s.t.Helper()
	p, bind := s.accept()
	p.send(bind.command|0x80000000, 0, bind.sequence, "74657374 00")
	return p
}

// received is a PDU that the client sent.
type received struct {
	command, status, sequence uint32
	body                      []byte
}

func (p *peer) read() received {
	p.t.Helper()
	h, err := p.tryRead()
	if err != nil {
		p.t.Fatalf("read a PDU: %v", err)
	}
	return h
}

func (p *peer) tryRead() (received, error) {
	_ = p.conn.SetReadDeadline(time.Now().Add(relaytest.Patience))
	var head [16]byte
	if _, err := io.ReadFull(p.in, head[:]); err != nil {
		return received{}, err
	}
	n := func(at int) uint32 { return binary.BigEndian.Uint32(head[at:]) }
	h := received{n(4), n(8), n(12), make([]byte, n(0)-16)}
	_, err := io.ReadFull(p.in, h.body)
	return h, err
}

// stream returns all further PDUs from the client until it closes.
func (p *peer) stream() <-chan received {
	all := make(chan received, 10_000)
	go func() {
		defer close(all)
		for {
			h, err := p.tryRead()
			if err != nil {
				return
			}
			all <- h
		}
	}()
	return all
}

// expect checks the next PDU from the client.
func (p *peer) expect(command, status, sequence uint32) {
	p.t.Helper()
	h := p.read()
	if h.command != command || h.status != status || h.sequence != sequence {
		p.t.Errorf("got the command 0x%08X with status 0x%02X and sequence number %d, want 0x%08X with 0x%02X and %d", h.command, h.status, h.sequence, command, status, sequence)
	}
}

// send sends a PDU whose body is in hex.
func (p *peer) send(command, status, sequence uint32, body string) {
	p.t.Helper()
	p.write(frameOf(p.t, command, status, sequence, body))
}

func (p *peer) write(raw []byte) {
	p.t.Helper()
	relaytest.Must(p.conn.Write(raw))(p.t)
}

func frameOf(t testing.TB, command, status, sequence uint32, body string) []byte {
	t.Helper()
	b := relaytest.Must(hex.DecodeString(strings.ReplaceAll(body, " ", "")))(t)
	out := make([]byte, 16, 16+len(b))
	for i, n := range []uint32{uint32(16 + len(b)), command, status, sequence} {
		binary.BigEndian.PutUint32(out[4*i:], n)
	}
	return append(out, b...)
}

// message is the body of a deliver_sm with a text.
func message(text string) string {
	return "00 0101 313233 00 0101 343536 00 00 00 00 00 00 00 00 00 00" + hex.EncodeToString([]byte{byte(len(text))}) + hex.EncodeToString([]byte(text))
}

const (
	deliverSM     = 0x00000005
	deliverSMResp = 0x80000005
	enquire       = 0x00000015
	enquireResp   = 0x80000015
	unbind        = 0x00000006
	unbindResp    = 0x80000006
	nack          = 0x80000000
)

// store keeps what a client has accepted.
type store struct {
	mu       sync.Mutex
	staged   []ReceivedPDU // in order
	arrivals []ReceivedPDU // accepted
	refuse   error
	answer   func(context.Context, ReceivedPDU) error // its error refuses the arrival; nil accepts all
}

func (l *store) accept(_ context.Context, a ReceivedPDU) (func(context.Context) error, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.staged = append(l.staged, a)
	return func(ctx context.Context) error { return l.wait(ctx, a) }, l.refuse
}

func (l *store) wait(ctx context.Context, a ReceivedPDU) error {
	if l.answer != nil {
		if err := l.answer(ctx, a); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrivals = append(l.arrivals, a)
	return nil
}

func (l *store) all() []ReceivedPDU {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]ReceivedPDU(nil), l.arrivals...)
}

// start runs a client against the SMSC until the test ends. The function that it
// returns stops the client and waits until it has ended.
func start(t *testing.T, s *smsc, l *store, change ...func(*Options)) (c *Client, stop func()) {
	t.Helper()
	o := Options{
		Carrier: "one", Name: "1-transceiver", Addr: s.l.Addr().String(), Accept: l.accept, SystemID: "us", Password: "secret",
		EnquireLink: time.Hour, FirstPause: time.Millisecond, LongestPause: 4 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, f := range change {
		f(&o)
	}
	c = relaytest.Must(New(o))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); c.Run(ctx) }()
	stop = func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(relaytest.Patience):
			t.Error("the client has not ended")
		}
	}
	t.Cleanup(stop)
	return c, stop
}

// await waits until the status of a client meets a condition.
func await(t *testing.T, c *Client, what string, holds func(Status) bool) {
	t.Helper()
	relaytest.Eventually(t, what, func() (any, bool) { s := c.Status(); return s, holds(s) })
}

// startBound starts a client, and a SMSC that accepts its bind.
func startBound(t *testing.T, l *store, change ...func(*Options)) (c *Client, p *peer, stop func()) {
	t.Helper()
	s := newSMSC(t)
	c, stop = start(t, s, l, change...)
	return c, s.bound(), stop
}

// awaitBound waits until a client is bound.
func awaitBound(t *testing.T, c *Client) {
	t.Helper()
	relaytest.Eventually(t, "the client is bound", func() (any, bool) { err := c.Check(t.Context()); return err, err == nil })
}

// counters are those of a Status that no longer change once a PDU is answered.
type counters struct{ Binds, Messages, Receipts, Malformed, Refused int64 }

func checkCounters(t *testing.T, c *Client, want counters) {
	t.Helper()
	s := c.Status()
	relaytest.Equal(t, "the counters", counters{s.Binds, s.Messages, s.Receipts, s.Malformed, s.Refused}, want)
}
