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
)

// patience is how long anything here may take on a busy machine.
const patience = time.Minute

// smsc is an SMSC that the test plays itself, octet by octet.
type smsc struct {
	t *testing.T
	l net.Listener
}

func newSMSC(t *testing.T) *smsc {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &smsc{t, l}
}

// peer is the SMSC's end of a connection.
type peer struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// accept takes a connection and reads the bind, without answering it.
func (s *smsc) accept() (*peer, heard) {
	s.t.Helper()
	late := time.AfterFunc(patience, func() { s.l.Close() })
	defer late.Stop()
	conn, err := s.l.Accept()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	p := &peer{s.t, conn, bufio.NewReader(conn)}
	return p, p.hear()
}

// bound takes a connection and accepts the bind.
func (s *smsc) bound() *peer {
	s.t.Helper()
	p, bind := s.accept()
	p.say(bind.command|0x80000000, 0, bind.sequence, "74657374 00")
	return p
}

// heard is a PDU that came from the client.
type heard struct {
	command, status, sequence uint32
	body                      []byte
}

func (p *peer) hear() heard {
	p.t.Helper()
	h, err := p.listen()
	if err != nil {
		p.t.Fatalf("no PDU came: %v", err)
	}
	return h
}

func (p *peer) listen() (heard, error) {
	_ = p.conn.SetReadDeadline(time.Now().Add(patience))
	var head [16]byte
	if _, err := io.ReadFull(p.in, head[:]); err != nil {
		return heard{}, err
	}
	n := func(at int) uint32 { return binary.BigEndian.Uint32(head[at:]) }
	h := heard{n(4), n(8), n(12), make([]byte, n(0)-16)}
	_, err := io.ReadFull(p.in, h.body)
	return h, err
}

// stream hands over all further PDUs from the client until it closes.
func (p *peer) stream() <-chan heard {
	all := make(chan heard, 10_000)
	go func() {
		defer close(all)
		for {
			h, err := p.listen()
			if err != nil {
				return
			}
			all <- h
		}
	}()
	return all
}

// answers checks the next PDU from the client.
func (p *peer) answers(command, status, sequence uint32) {
	p.t.Helper()
	h := p.hear()
	if h.command != command || h.status != status || h.sequence != sequence {
		p.t.Errorf("got 0x%08X with status 0x%02X to %d, want 0x%08X with 0x%02X to %d", h.command, h.status, h.sequence, command, status, sequence)
	}
}

// say sends a PDU whose body is in hex.
func (p *peer) say(command, status, sequence uint32, body string) {
	p.t.Helper()
	p.write(frameOf(p.t, command, status, sequence, body))
}

func (p *peer) write(raw []byte) {
	p.t.Helper()
	if _, err := p.conn.Write(raw); err != nil {
		p.t.Fatal(err)
	}
}

func frameOf(t testing.TB, command, status, sequence uint32, body string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(body, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
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

// log keeps what a client hands over.
type log struct {
	mu       sync.Mutex
	staged   []Arrival // in order
	arrivals []Arrival // accepted
	refuse   error
	answer   func(context.Context, Arrival) error // nil accepts
}

func (l *log) accept(_ context.Context, a Arrival) (Wait, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.staged = append(l.staged, a)
	return func(ctx context.Context) error { return l.wait(ctx, a) }, l.refuse
}

func (l *log) wait(ctx context.Context, a Arrival) error {
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

func (l *log) all() []Arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Arrival(nil), l.arrivals...)
}

// start runs a client against the SMSC until the test ends. The function it
// returns has it end, and waits until it has.
func start(t *testing.T, s *smsc, l *log, change ...func(*Options)) (c *Client, stop func()) {
	t.Helper()
	o := Options{
		Name: "one", Addr: s.l.Addr().String(), Accept: l.accept, SystemID: "us", Password: "secret",
		EnquireLink: time.Hour, FirstPause: time.Millisecond, LongestPause: 4 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); c.Run(ctx) }()
	stop = func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("the client does not end")
		}
	}
	t.Cleanup(stop)
	return c, stop
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
