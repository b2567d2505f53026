package smpp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linxGnu/gosmpp/data"
	"github.com/linxGnu/gosmpp/pdu"

	"github.com/penstock/penstock/decoders/smpp"
	"github.com/penstock/penstock/relay"
)

// Client maintains one bind to a carrier.
type Client struct {
	o       Options
	status  status
	session atomic.Pointer[session] // the bound session, if it may send; otherwise nil
	onBound func()
}

// New returns a client that is not bound; Run binds.
func New(o Options) (*Client, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	c := &Client{o: o}
	c.status.current = Status{Carrier: o.Carrier, Name: o.Name, Type: o.Bind, Addr: o.Addr}
	c.status.set(Waiting, o.Now(), nil)
	return c, nil
}

// OnBound sets a function that is called whenever the client is bound and may send. It must be
// called before Run.
func (c *Client) OnBound(f func()) { c.onBound = f }

// stableAfter is the duration of a bind after which the backoff is reset.
const stableAfter = 30 * time.Second

// Run maintains the bind until ctx is done. Then it waits for PDUs in flight,
// unbinds, and returns.
func (c *Client) Run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; failures++ {
		began := c.o.Now()
		err := c.bindAndServe(ctx)
		if ctx.Err() != nil {
			break
		}
		if c.o.Now().Sub(began) > stableAfter {
			failures = 0
		}
		pause := c.backoff(failures, err)
		c.status.set(Waiting, c.o.Now(), err)
		c.o.Logger.Warn("bind is down", "error", err, "again_in", pause.Round(time.Millisecond).String())
		relay.Sleep(ctx, pause)
	}
	c.status.set(Stopped, c.o.Now(), nil)
	c.o.Logger.Info("bind is closed")
}

func (c *Client) bindAndServe(ctx context.Context) error {
	c.status.set(Connecting, c.o.Now(), nil)
	l, err := c.bind(ctx)
	if err != nil {
		return err
	}
	c.status.update(func(s *Status) { s.Binds++ })
	c.status.set(Bound, c.o.Now(), nil)
	c.o.Logger.Info("bind is up", "address", c.o.Addr, "smsc", l.systemID)
	s := newSession(c, l)
	if c.o.Bind != Receiver {
		c.session.Store(s)
		defer c.session.Store(nil)
		if c.onBound != nil {
			c.onBound()
		}
	}
	return s.run(ctx)
}

// backoff returns the delay before the next bind, with jitter. If the SMSC refused the bind or the
// credentials, backoff starts with LongestPause, because carriers lock out clients that retry too
// often.
func (c *Client) backoff(failures int, err error) time.Duration {
	pause := relay.Backoff(c.o.FirstPause, c.o.LongestPause, failures)
	if refusal, ok := errors.AsType[bindError](err); ok {
		switch data.CommandStatusType(refusal) {
		case data.ESME_RBINDFAIL, data.ESME_RINVPASWD, data.ESME_RINVSYSID:
			pause = c.o.LongestPause
		}
	}
	return pause - time.Duration(c.o.Rand()*float64(pause)/2)
}

// bindError is the status with which the SMSC refused a bind.
type bindError data.CommandStatusType

func (e bindError) Error() string {
	return fmt.Sprintf("the SMSC refused the bind with 0x%02X, %s", uint32(e), data.CommandStatusType(e).Desc())
}

// link is a bound connection.
type link struct {
	conn     net.Conn
	reader   *bufio.Reader
	systemID string // of the SMSC
}

// bind connects and binds. Each of the two steps is bounded by the timeout.
func (c *Client) bind(ctx context.Context) (*link, error) {
	dialCtx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	dial := new(net.Dialer).DialContext
	if c.o.TLS != nil {
		dial = (&tls.Dialer{Config: c.o.TLS}).DialContext
	}
	conn, err := dial(dialCtx, "tcp", c.o.Addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	l := &link{conn: conn, reader: bufio.NewReaderSize(conn, 64<<10)}
	if err := c.sendBind(l); err != nil {
		conn.Close()
		return nil, fmt.Errorf("bind: %w", err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil || !stop() {
		conn.Close()
		return nil, errors.Join(errors.New("bind: interrupted"), err)
	}
	return l, nil
}

// sendBind sends the bind request and reads its response. It skips PDUs that
// arrive before the response, for example an outbind.
func (c *Client) sendBind(l *link) error {
	kinds := map[Bind]pdu.BindingType{Transceiver: pdu.Transceiver, Receiver: pdu.Receiver, Transmitter: pdu.Transmitter}
	p := pdu.NewBindRequest(kinds[c.o.Bind])
	p.SystemID, p.Password, p.SystemType = c.o.SystemID, c.o.Password, c.o.SystemType
	p.AddressRange.AddressRange = c.o.AddressRange
	if err := l.conn.SetDeadline(time.Now().Add(c.o.Timeout)); err != nil {
		return err
	}
	if _, err := l.conn.Write(marshal(p)); err != nil {
		return err
	}
	for {
		raw, err := readPDU(l.reader)
		if err != nil {
			return err
		}
		h, err := smpp.ParseHeader(raw)
		if err != nil {
			return err
		}
		if h.Sequence != uint32(p.SequenceNumber) || !h.Command.Response() {
			continue
		}
		if h.Status != 0 {
			return bindError(h.Status)
		}
		if h.Command == smpp.GenericNack {
			return errors.New("the SMSC did not understand the bind")
		}
		response, err := pdu.Parse(bytes.NewReader(raw))
		if response, ok := response.(*pdu.BindResp); ok && err == nil {
			l.systemID = response.SystemID // empty in some responses
		}
		return nil
	}
}

func marshal(p pdu.PDU) []byte {
	b := pdu.NewBuffer(make([]byte, 0, 64))
	p.Marshal(b)
	return b.Bytes()
}

// State is the state of a bind.
type State string

// The states.
const (
	Connecting State = "connecting"
	Bound      State = "bound"
	Waiting    State = "waiting" // for the next bind
	Stopped    State = "stopped"
)

// Status is the state of a bind with its counters since the start.
type Status struct {
	Carrier   string
	Name      string
	Type      Bind
	Addr      string
	State     State
	Since     time.Time // when the bind was established or lost
	Error     string    // the reason why the bind is down; empty if bound
	Binds     int64
	Messages  int64 // accepted
	Receipts  int64 // accepted
	Malformed int64 // PDUs that could not be parsed, whether accepted or not
	Refused   int64 // PDUs that could not be accepted
	InFlight  int64 // PDUs being accepted
}

// status is a Status that several goroutines update.
type status struct {
	mu       sync.Mutex
	current  Status
	refusing atomic.Bool // the last PDU was not accepted
}

func (s *status) update(change func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.current)
}

// set changes the state. Connecting keeps the last error.
func (s *status) set(state State, now time.Time, err error) {
	s.update(func(current *Status) {
		switch {
		case state == Connecting:
		case err != nil:
			current.Error = err.Error()
		default:
			current.Error = ""
		}
		if current.Since.IsZero() || (state == Bound) != (current.State == Bound) {
			current.Since = now
		}
		current.State = state
	})
}

// Status returns the state of the bind.
func (c *Client) Status() Status {
	c.status.mu.Lock()
	defer c.status.mu.Unlock()
	return c.status.current
}

// Check returns nil if the client is bound, else its state and error.
func (c *Client) Check(context.Context) error {
	s := c.Status()
	switch {
	case s.State == Bound:
		return nil
	case s.Error == "":
		return fmt.Errorf("%s", s.State)
	}
	return fmt.Errorf("%s: %s", s.State, s.Error)
}
