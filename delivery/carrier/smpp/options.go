package smpp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"
)

// Arrival is a PDU that an SMSC sent and that is to be kept: a message, a
// receipt, or something that cannot be read.
type Arrival struct {
	Carrier string // the client's name
	// ID is the same for a PDU that the SMSC repeats within a session, with the
	// same sequence number and the same octets, and for no other.
	ID      string
	Receipt bool
	PDU     []byte // not kept by the client
}

// Bind is what a bind is for.
type Bind string

// The binds. What a transmitter's SMSC reports comes over another bind.
const (
	Transceiver Bind = "transceiver"
	Receiver    Bind = "receiver"
	Transmitter Bind = "transmitter"
)

// Alphabet is how an SMSC has text of data_coding 0, its default alphabet.
type Alphabet string

// The default alphabets of SMSCs.
const (
	GSM7   Alphabet = "gsm7"        // a septet in each octet, as nearly all do
	Packed Alphabet = "gsm7-packed" // septets packed as on the air
	Latin1 Alphabet = "latin1"      // ISO 8859-1
)

// Accept gives an arrival its place among those to be kept, in the order of the
// calls. It is on disk when the function it returns has returned nil.
type Accept func(ctx context.Context, a Arrival) (Wait, error)

// Wait waits until an arrival is on disk.
type Wait func(ctx context.Context) error

// Options say whom to bind to and how. Name, Addr and Accept are required.
type Options struct {
	Name   string // of the carrier, in logs, metrics and events
	Addr   string // host:port
	Accept Accept

	SystemID     string
	Password     string
	SystemType   string
	AddressRange string
	Bind         Bind        // "" means Transceiver
	Alphabet     Alphabet    // of data_coding 0; "" means GSM7
	TLS          *tls.Config // nil means no TLS; its ServerName defaults to Addr's host

	// EnquireLink is how often the link is tried; 0 means 30 s.
	EnquireLink time.Duration
	// Timeout is how long the other side may take to connect, to answer a bind,
	// an unbind or an enquire_link, and to take what we write; 0 means 10 s.
	Timeout time.Duration
	// AcceptTimeout is how long accepting may take; 0 means 10 s.
	AcceptTimeout time.Duration
	// AnswerTimeout is how long the answer to a submit_sm may take; 0 means 30 s.
	AnswerTimeout time.Duration
	// InFlight is how many PDUs may wait to be accepted; 0 means 1000.
	InFlight int
	// Pauses between attempts to bind: the first, doubled until the longest, each
	// shortened by up to a half at random; 0 means 1 s and 1 min.
	FirstPause, LongestPause time.Duration

	Logger *slog.Logger     // nil means slog.Default
	Now    func() time.Time // nil means time.Now
	Rand   func() float64   // in [0, 1); nil means math/rand's
}

func (o *Options) complete() error {
	if o.Name == "" || o.Accept == nil {
		return errors.New("smpp: a carrier needs a name and somebody who accepts")
	}
	host, _, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return fmt.Errorf("smpp %s: address: %w", o.Name, err)
	}
	if o.TLS != nil && o.TLS.ServerName == "" {
		o.TLS = o.TLS.Clone()
		o.TLS.ServerName = host
	}
	o.EnquireLink = cmp.Or(o.EnquireLink, 30*time.Second)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.AcceptTimeout = cmp.Or(o.AcceptTimeout, 10*time.Second)
	o.AnswerTimeout = cmp.Or(o.AnswerTimeout, 30*time.Second)
	o.InFlight = cmp.Or(o.InFlight, 1000)
	o.FirstPause, o.LongestPause = cmp.Or(o.FirstPause, time.Second), cmp.Or(o.LongestPause, time.Minute)
	o.Logger = cmp.Or(o.Logger, slog.Default()).With("carrier", o.Name)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	return nil
}
