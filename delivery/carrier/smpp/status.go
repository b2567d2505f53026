package smpp

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

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
	Since     time.Time // when it was bound or lost
	Error     string    // why it is not bound; empty if bound
	Binds     int64
	Messages  int64 // accepted
	Receipts  int64 // accepted
	Malformed int64 // PDUs that could not be parsed, accepted or not
	Refused   int64 // PDUs that could not be accepted
	InFlight  int64 // PDUs being accepted
}

// status holds the values of Status.
type status struct {
	mu    sync.Mutex
	state State
	since time.Time
	err   error

	refusing atomic.Bool // the last PDU was not accepted

	binds, messages, receipts, malformed, refused, inFlight atomic.Int64
}

// set changes the state. Connecting keeps the last error.
func (s *status) set(state State, now time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state != Connecting {
		s.err = err
	}
	if s.since.IsZero() || (state == Bound) != (s.state == Bound) {
		s.since = now
	}
	s.state = state
}

// Status returns the state of the bind.
func (c *Client) Status() Status {
	s := &c.status
	s.mu.Lock()
	defer s.mu.Unlock()
	status := Status{
		Carrier: c.o.Carrier, Name: c.o.Name, Type: c.o.Bind, Addr: c.o.Addr, State: s.state, Since: s.since, Binds: s.binds.Load(), Messages: s.messages.Load(),
		Receipts: s.receipts.Load(), Malformed: s.malformed.Load(), Refused: s.refused.Load(), InFlight: s.inFlight.Load(),
	}
	if s.err != nil {
		status.Error = s.err.Error()
	}
	return status
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
