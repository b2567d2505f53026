package carrier

import (
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

// Record takes the error from an outcome that pauses the queue. Other outcomes clear it,
// except Unknown ones.
func (h *Health) Record(o Outcome) {
	if o.PauseQueue {
		h.lastError.Store(&o.Reason)
	} else if o.Verdict != Unknown {
		h.lastError.Store(nil)
	}
}
