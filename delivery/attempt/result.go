// Package attempt holds the result of one attempt of a delivery, which the senders of
// delivery/worker return to delivery/queue, and that of a message for a SIM.
package attempt

import (
	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/relay/outbox"
)

// Result is the result of an attempt, from its sender: what is stored of it, and the verdict.
type Result struct {
	// Attempt is stored with the delivery; its time is that of the start.
	Attempt outbox.Attempt
	Verdict delivery.Verdict
	// Simulated is set if a simulator or the mail sink took it.
	Simulated bool
}

// SIMResult is the operator's response to a message for a SIM.
type SIMResult struct {
	// Simulated is set if a simulator accepted the message.
	Simulated bool
	Response  string // at most 1 KiB
}
