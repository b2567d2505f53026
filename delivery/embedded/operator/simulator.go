// Package operator is the SIM operator of a gateway that has none: it takes every
// message and brings it nowhere, and says so (its deliveries are simulated).
//
// The last four digits of an ICCID say otherwise: 9001 rejects, 9004 fails and
// may be tried again. 9002 and 9003, which buffer or never report elsewhere, are
// taken like any other.
package operator

import (
	"context"
	"errors"
	"strings"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/operator"
	"github.com/penstock/penstock/relay/outbox"
)

// Simulator is an operator.SIMs.
type Simulator struct{}

// Deliver takes a message.
func (Simulator) Deliver(_ context.Context, m outbox.SIM) (operator.Result, error) {
	switch {
	case strings.HasSuffix(m.ICCID, "9001"):
		return operator.Result{Simulated: true}, delivery.Unsendable(errors.New("the simulated operator rejects the message"))
	case strings.HasSuffix(m.ICCID, "9004"):
		return operator.Result{Simulated: true}, errors.New("the simulated operator fails downstream")
	}
	return operator.Result{Simulated: true, Response: "taken by the simulator, brought nowhere"}, nil
}
