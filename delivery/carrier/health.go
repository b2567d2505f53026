package carrier

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
)

// Health keeps the last error of a carrier that is called over HTTP. Clients embed
// it. It is safe for concurrent use; the zero value has no error.
type Health struct {
	lastError atomic.Pointer[string]
}

// Ready always returns true: the protocol has no connection state.
func (h *Health) Ready() bool { return true }

// Check returns the last error that was not specific to a message.
func (h *Health) Check(context.Context) error {
	if reason := h.lastError.Load(); reason != nil {
		return errors.New(*reason)
	}
	return nil
}

// Go makes a submission in the background and passes its outcome to done. It records the
// error of an outcome that pauses the queue; other outcomes clear it, except Unknown
// ones.
func (h *Health) Go(submit func() Outcome, done func(Outcome)) {
	go func() {
		o := submit()
		if o.PauseQueue {
			h.lastError.Store(new(cmp.Or(o.Cause, o.Reason)))
		} else if o.Verdict != Unknown {
			h.lastError.Store(nil)
		}
		done(o)
	}()
}
