package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/relay/outbox"
)

// Result is what the operator said.
type Result struct {
	// Simulated is set if a simulator took it.
	Simulated bool
	Response  string // at most 1 KiB
}

// SIMs brings one message to a SIM. An error is judged like that of a way out;
// delivery.Unsendable means never again.
type SIMs interface {
	// The id is the delivery's: a message whose id was taken before is not brought
	// again.
	Deliver(ctx context.Context, id string, m outbox.SIM) (Result, error)
}

// Serves reports whether a delivery's relay still serves its SIM.
type Serves func(ctx context.Context, d outbox.Delivery) (bool, error)

// Operator asks whether the SIM is still served before each attempt.
type Operator struct {
	sims   SIMs
	serves Serves
}

// New returns an Operator; both are needed.
func New(sims SIMs, serves Serves) (*Operator, error) {
	if sims == nil || serves == nil {
		return nil, errors.New("operator: a dependency is missing")
	}
	return &Operator{sims: sims, serves: serves}, nil
}

// Deliver makes one attempt.
func (o *Operator) Deliver(ctx context.Context, d outbox.Delivery) (Result, error) {
	serves, err := o.serves(ctx, d)
	if err != nil {
		return Result{}, delivery.OwnFault(fmt.Errorf("operator: relay %s: %w", d.Relay, err))
	}
	if !serves {
		return Result{}, delivery.Unsendable(fmt.Errorf("the relay %s no longer delivers to the SIM %s", d.Relay, d.SIM.ICCID))
	}
	return o.sims.Deliver(ctx, d.ID, *d.SIM)
}
