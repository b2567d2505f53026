package smpp

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/decoders/gsm"
)

// Client keeps one bind to one carrier.
type Client struct {
	o       Options
	status  status
	current atomic.Pointer[session] // that is bound and may send; nil if none is
	bound   func()
	// alphabet is what names of senders are written in.
	alphabet *gsm.Alphabet
}

// New returns a client that is not bound; Run binds.
func New(o Options) (*Client, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	c := &Client{o: o, alphabet: gsm.NewAlphabet()}
	c.status.set(Waiting, o.Now(), nil)
	return c, nil
}

// OnBound has a function called whenever submissions can be handed over again.
// It is for the time before Run.
func (c *Client) OnBound(f func()) { c.bound = f }

// steady is how long a bind must have held for the next pause to be short.
const steady = 30 * time.Second

// Run keeps the bind until ctx is done. Then it lets what is under way be
// accepted and answered, unbinds, and returns.
func (c *Client) Run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; failures++ {
		began := c.o.Now()
		err := c.once(ctx)
		if ctx.Err() != nil {
			break
		}
		if c.o.Now().Sub(began) > steady {
			failures = 0
		}
		pause := c.pause(failures, err)
		c.status.set(Waiting, c.o.Now(), err)
		c.o.Logger.Warn("carrier is not bound", "error", err, "again_in", pause.Round(time.Millisecond).String())
		sleep(ctx, pause)
	}
	c.status.set(Stopped, c.o.Now(), nil)
	c.o.Logger.Info("carrier is unbound")
}

// once binds and serves the bind until it ends.
func (c *Client) once(ctx context.Context) error {
	c.status.set(Connecting, c.o.Now(), nil)
	l, err := c.bind(ctx)
	if err != nil {
		return err
	}
	c.status.binds.Add(1)
	c.status.set(Bound, c.o.Now(), nil)
	c.o.Logger.Info("carrier is bound", "address", c.o.Addr, "smsc", l.systemID)
	s := newSession(c, l)
	if c.o.Bind != Receiver {
		c.current.Store(s)
		defer c.current.Store(nil)
		if c.bound != nil {
			c.bound()
		}
	}
	return s.run(ctx)
}

// pause is how long to wait after so many failures. A carrier that refuses the
// credentials locks out who tries too often.
func (c *Client) pause(failures int, err error) time.Duration {
	pause := c.o.FirstPause << min(failures, 20)
	if refused, ok := errors.AsType[*BindError](err); ok && refused.credentials() {
		pause = c.o.LongestPause
	}
	pause = min(pause, c.o.LongestPause)
	return pause - time.Duration(c.o.Rand()*float64(pause)/2)
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
