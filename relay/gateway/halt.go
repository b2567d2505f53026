package gateway

import (
	"fmt"
	"time"
)

// Halt records that the database of the gateways was found in an earlier state than a
// gateway has seen. It is stored in that database, so that all its gateways stop
// processing, until one of them has recovered.
type Halt struct {
	Node      string    `json:"node"`       // of the gateway that found it
	Since     time.Time `json:"since"`      // when it was found
	LastWrite time.Time `json:"last_write"` // of the earlier state; zero if it has none
	// RecoveredAt is the time at which a gateway recovered; zero before that.
	RecoveredAt time.Time `json:"recovered_at"`
}

// Holds reports whether the halt is not recovered.
func (h *Halt) Holds() bool { return !h.Since.IsZero() && h.RecoveredAt.IsZero() }

// Reason explains why it is unknown what became of a message that was due before the halt.
func (h *Halt) Reason() string {
	return fmt.Sprintf("the database was put back to its state of %s: whether the message was sent or deleted from then until %s is unknown",
		h.LastWrite.UTC().Format(time.RFC3339), h.Since.UTC().Format(time.RFC3339))
}
