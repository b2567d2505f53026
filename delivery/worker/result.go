package worker

import (
	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/relay/outbox"
)

// Result is how one attempt went.
type Result struct {
	// Attempt is kept with the delivery; its time is that of the start.
	Attempt outbox.Attempt
	Verdict delivery.Verdict
	// Simulated is set if what took it is a simulator or the mail sink.
	Simulated bool
}
