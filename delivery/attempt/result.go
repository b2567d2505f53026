// Package attempt defines the result of one attempt of a delivery, which delivery/worker
// returns to delivery/queue, and the result of a message to a SIM.
package attempt

import (
	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/relay/outbox"
)

// Result is the result of an attempt.
type Result struct {
	// Attempt is stored with the delivery. Its time is the start of the attempt.
	Attempt outbox.Attempt
	Verdict delivery.Verdict
	// Simulated is set if a simulator or the mail sink accepted the delivery.
	Simulated bool
}

// SIMResult is the operator's response to a message for a SIM.
type SIMResult struct {
	// Simulated is set if a simulator accepted the message.
	Simulated bool
	Response  string // at most 1 KiB
}
