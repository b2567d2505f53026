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

// smsc is an SMSC. The test reads and writes its PDUs.
type smsc struct {
	t        *testing.T
	listener net.Listener
}

func newSMSC(t *testing.T) *smsc {
	t.Helper()
	listener := relaytest.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { listener.Close() })
	return &smsc{t, listener}
}

// peer is the SMSC's end of a connection.
type peer struct {
	t      *testing.T
	smsc   *smsc
	conn   net.Conn
	reader *bufio.Reader
}

// acceptConn accepts a connection and reads the bind request without answering it.
func (s *smsc) acceptConn() (*peer, received) {
	s.t.Helper()
	late := time.AfterFunc(relaytest.Patience, func() { s.listener.Close() })
	defer late.Stop()
	conn, err := s.listener.Accept()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	p := &peer{s.t, s, conn, bufio.NewReader(conn)}
	return p, p.read()
}

// acceptBind accepts a connection and its bind.
func (s *smsc) acceptBind() *peer {
	s.t.Helper()
	p, bind := s.acceptConn()
	p.send(bind.command|0x80000000, 0, bind.sequence, "74657374 00")
	return p
}

// received is a PDU that the SMSC received from the client.
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
	if _, err := io.ReadFull(p.reader, head[:]); err != nil {
		return received{}, err
	}
	n := func(offset int) uint32 { return binary.BigEndian.Uint32(head[offset:]) }
	h := received{n(4), n(8), n(12), make([]byte, n(0)-16)}
	_, err := io.ReadFull(p.reader, h.body)
	return h, err
}

// stream returns the further PDUs from the client. The channel is closed with the connection.
func (p *peer) stream() <-chan received {
	pdus := make(chan received, 10_000)
	go func() {
		defer close(pdus)
		for {
			h, err := p.tryRead()
			if err != nil {
				return
			}
			pdus <- h
		}
	}()
	return pdus
}

// expect checks the next PDU from the client.
func (p *peer) expect(command, status, sequence uint32) {
	p.t.Helper()
	h := p.read()
	if h.command != command || h.status != status || h.sequence != sequence {
		p.t.Errorf("got the command 0x%08X with status 0x%02X and sequence number %d, want 0x%08X with 0x%02X and %d", h.command, h.status, h.sequence, command, status, sequence)
	}
}

// send sends a PDU. The body is in hex.
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
	frame := make([]byte, 16, 16+len(b))
	for i, n := range []uint32{uint32(16 + len(b)), command, status, sequence} {
		binary.BigEndian.PutUint32(frame[4*i:], n)
	}
	return append(frame, b...)
}

// message is the body of a deliver_sm with a text.
func message(text string) string {
	return "00 0101 313233 00 0101 343536 00 00 00 00 00 00 00 00 00 00" + hex.EncodeToString([]byte{byte(len(text))}) + hex.EncodeToString([]byte(text))
}

const (
	deliverSM       = 0x00000005
	deliverSMResp   = 0x80000005
	enquireLink     = 0x00000015
	enquireLinkResp = 0x80000015
	unbind          = 0x00000006
	unbindResp      = 0x80000006
	nack            = 0x80000000
)

// store stores the PDUs that a client accepts.
type store struct {
	mu         sync.Mutex
	enqueued   []ReceivedPDU // in order
	accepted   []ReceivedPDU // accepted
	enqueueErr error
	onWait     func(context.Context, ReceivedPDU) error // called before a PDU is accepted; its error refuses the PDU
}

func (s *store) accept(_ context.Context, a ReceivedPDU) (func(context.Context) error, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enqueued = append(s.enqueued, a)
	return func(ctx context.Context) error { return s.wait(ctx, a) }, s.enqueueErr
}

func (s *store) wait(ctx context.Context, a ReceivedPDU) error {
	if s.onWait != nil {
		if err := s.onWait(ctx, a); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepted = append(s.accepted, a)
	return nil
}

func (s *store) pdus() []ReceivedPDU {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]ReceivedPDU(nil), s.accepted...)
}

// start runs a client of the SMSC until the test ends. stop stops the client and waits until
// Run has returned.
func start(t *testing.T, s *smsc, st *store, change ...func(*Options)) (c *Client, stop func()) {
	t.Helper()
	o := Options{
		Carrier: "one", Name: "1-transceiver", Addr: s.listener.Addr().String(), Accept: st.accept, SystemID: "us", Password: "secret",
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
			t.Error("Run has not returned")
		}
	}
	t.Cleanup(stop)
	return c, stop
}

// await waits until the status of a client meets a condition.
func await(t *testing.T, c *Client, label string, condition func(Status) bool) {
	t.Helper()
	relaytest.Eventually(t, label, func() (any, bool) { s := c.Status(); return s, condition(s) })
}

// startBound starts a client and an SMSC that accepts its bind.
func startBound(t *testing.T, st *store, change ...func(*Options)) (c *Client, p *peer, stop func()) {
	t.Helper()
	s := newSMSC(t)
	c, stop = start(t, s, st, change...)
	return c, s.acceptBind(), stop
}

// awaitBound waits until a client is bound.
func awaitBound(t *testing.T, c *Client) {
	t.Helper()
	relaytest.Eventually(t, "the client is bound", func() (any, bool) { err := c.Check(t.Context()); return err, err == nil })
}

// counters are the fields of a Status that do not change after a PDU was answered.
type counters struct{ Binds, Messages, Receipts, Malformed, Refused int64 }

func checkCounters(t *testing.T, c *Client, want counters) {
	t.Helper()
	s := c.Status()
	relaytest.Equal(t, "the counters", counters{s.Binds, s.Messages, s.Receipts, s.Malformed, s.Refused}, want)
}
