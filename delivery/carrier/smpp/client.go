package smpp

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/relay"
)

// Client maintains one bind to a carrier, which may have several.
type Client struct {
	o       Options
	status  status
	current atomic.Pointer[session] // the bound session that may send; nil if there is none
	onBound func()
}

// New returns a client that is not bound; Run binds.
func New(o Options) (*Client, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	c := &Client{o: o}
	c.status.set(Waiting, o.Now(), nil)
	return c, nil
}

// OnBound sets a function that is called whenever submissions are possible
// again. It must be called before Run.
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

// bindAndServe binds and serves the session until it ends.
func (c *Client) bindAndServe(ctx context.Context) error {
	c.status.set(Connecting, c.o.Now(), nil)
	l, err := c.bind(ctx)
	if err != nil {
		return err
	}
	c.status.binds.Add(1)
	c.status.set(Bound, c.o.Now(), nil)
	c.o.Logger.Info("bind is up", "address", c.o.Addr, "smsc", l.systemID)
	s := newSession(c, l)
	if c.o.Bind != Receiver {
		c.current.Store(s)
		defer c.current.Store(nil)
		if c.onBound != nil {
			c.onBound()
		}
	}
	return s.run(ctx)
}

// backoff returns the delay after so many failures. It is the longest one after
// wrong credentials, because carriers lock out clients that retry too often.
func (c *Client) backoff(failures int, err error) time.Duration {
	pause := relay.Backoff(c.o.FirstPause, c.o.LongestPause, failures)
	if refused, ok := errors.AsType[*bindError](err); ok && refused.wrongCredentials() {
		pause = c.o.LongestPause
	}
	return pause - time.Duration(c.o.Rand()*float64(pause)/2)
}
