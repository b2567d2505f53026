package operator

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/attempt"
	"github.com/penstock/penstock/relay/outbox"
)

// SIMs delivers messages to SIMs. Its errors are classified like those of other senders;
// delivery.Unsendable means that the message is not retried.
type SIMs interface {
	// Deliver delivers a message. id is the id of the delivery. A message with the id
	// of an accepted message is not delivered again.
	Deliver(ctx context.Context, id string, m outbox.SIM) (attempt.SIMResult, error)
}

// ServesFunc reports whether a delivery's relay still serves its SIM.
type ServesFunc func(ctx context.Context, d outbox.Delivery) (bool, error)

// Operator checks before each attempt that the relay still serves the SIM.
type Operator struct {
	sims   SIMs
	serves ServesFunc
}

// New returns an Operator.
func New(sims SIMs, serves ServesFunc) *Operator { return &Operator{sims: sims, serves: serves} }

// Deliver makes one attempt.
func (o *Operator) Deliver(ctx context.Context, d outbox.Delivery) (attempt.SIMResult, error) {
	serves, err := o.serves(ctx, d)
	if err != nil {
		return attempt.SIMResult{}, delivery.OwnFault(fmt.Errorf("operator: relay %s: %w", d.Relay, err))
	}
	if !serves {
		return attempt.SIMResult{}, delivery.Unsendable(fmt.Errorf("the relay %s no longer delivers to the SIM %s", d.Relay, d.SIM.ICCID))
	}
	return o.sims.Deliver(ctx, d.ID, *d.SIM)
}
