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

	"github.com/penstock/penstock/decoders/smpp"
)

// ReceivedPDU is a PDU from an SMSC that must be stored: a message, a receipt, or an invalid PDU.
type ReceivedPDU struct {
	Carrier string // the client's carrier
	Bind    string // the client's bind
	// ID is unique, but the same for a PDU that the SMSC repeats within a session with the
	// same sequence number and the same octets.
	ID      string
	Receipt bool
	PDU     []byte // not retained by the client
}

// Bind is the type of a bind.
type Bind string

// The types of bind. Receipts of messages over a transmitter arrive over another bind.
const (
	Transceiver Bind = "transceiver"
	Receiver    Bind = "receiver"
	Transmitter Bind = "transmitter"
)

// Accept enqueues a PDU to be stored, in the order of the calls. The PDU is on disk when the
// returned function has returned nil.
type Accept func(ctx context.Context, p ReceivedPDU) (wait func(context.Context) error, err error)

// Options configures a client. Carrier, Name, Addr and Accept are required.
type Options struct {
	Carrier string // its name in logs, metrics and events
	Name    string // of the bind, unique for the carrier, for example 1-transmitter
	Addr    string // host:port
	Accept  Accept

	SystemID     string
	Password     string
	SystemType   string
	AddressRange string
	Bind         Bind          // "" means Transceiver
	Alphabet     smpp.Alphabet // of data_coding 0
	TLS          *tls.Config   // nil means no TLS; its ServerName defaults to Addr's host

	// EnquireLink is the interval of enquire_link; 0 means 30 s.
	EnquireLink time.Duration
	// Timeout bounds a connect, a bind, an unbind, an enquire_link and a write;
	// 0 means 10 s.
	Timeout time.Duration

	// AnswerTimeout bounds the wait for a submit_sm_resp; 0 means 30 s.
	AnswerTimeout time.Duration
	// MaxUnwritten is the maximum number of submissions that wait to be written; 0 means 10.
	// Package submit limits those without a response.
	MaxUnwritten int
	// InFlight is the maximum number of PDUs being accepted; 0 means 1000.
	InFlight int
	// FirstPause and LongestPause bound the backoff between binds, which doubles
	// and has a jitter of up to minus a half; 0 means 1 s and 1 min.
	FirstPause, LongestPause time.Duration

	Logger *slog.Logger     // nil means slog.Default
	Now    func() time.Time // nil means time.Now
	Rand   func() float64   // in [0, 1); nil means math/rand's
}

func (o *Options) setDefaults() error {
	if o.Carrier == "" || o.Name == "" || o.Accept == nil {
		return errors.New("smpp: a bind needs a carrier, a name and an Accept function")
	}
	host, _, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return fmt.Errorf("smpp %s: bind %s: address: %w", o.Carrier, o.Name, err)
	}
	if o.TLS != nil && o.TLS.ServerName == "" {
		o.TLS = o.TLS.Clone()
		o.TLS.ServerName = host
	}
	o.Bind = cmp.Or(o.Bind, Transceiver)
	o.EnquireLink = cmp.Or(o.EnquireLink, 30*time.Second)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)

	o.AnswerTimeout = cmp.Or(o.AnswerTimeout, 30*time.Second)
	o.MaxUnwritten = cmp.Or(o.MaxUnwritten, 10)
	o.InFlight = cmp.Or(o.InFlight, 1000)
	o.FirstPause, o.LongestPause = cmp.Or(o.FirstPause, time.Second), cmp.Or(o.LongestPause, time.Minute)
	o.Logger = cmp.Or(o.Logger, slog.Default()).With("carrier", o.Carrier, "bind", o.Name)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	return nil
}
