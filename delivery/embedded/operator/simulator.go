// Package operator simulates a SIM operator for installations that have none: it completes
// commands at once, delivers no message, and marks its results as simulated. The simulator has no
// state: a result depends only on the SIM, the command and the time since the command, so that a
// restart does not change the result.
//
// The last four digits of an ICCID can select another result, see docs/simulators.md.
package operator

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/attempt"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/provisioning"
	"github.com/penstock/penstock/relay/sim"
)

// Slow is the duration of the commands of a slow SIM.
const Slow = 5 * time.Second

// Simulator implements SIMs of package delivery/operator, and provisioning.Operator. The zero value
// works.
type Simulator struct {
	Now func() time.Time // nil means time.Now
}

// Deliver accepts a message without delivering it.
func (Simulator) Deliver(_ context.Context, _ string, m outbox.SIM) (attempt.SIMResult, error) {
	switch {
	case strings.HasSuffix(m.ICCID, "9001"):
		return attempt.SIMResult{Simulated: true}, delivery.Unsendable(errors.New("the simulated operator rejects the message"))
	case strings.HasSuffix(m.ICCID, "9004"):
		return attempt.SIMResult{Simulated: true}, errors.New("the simulated operator fails downstream")
	}
	return attempt.SIMResult{Simulated: true, Response: "accepted by the simulator, not delivered"}, nil
}

// Ready returns KindUnavailable for a SIM whose operator is down.
func (Simulator) Ready(_ context.Context, iccid string) error {
	if strings.HasSuffix(iccid, "9004") {
		return unavailable()
	}
	return nil
}

func unavailable() error {
	return relay.Errorf(relay.KindUnavailable, "operator: the simulated operator is down for this SIM")
}

// Command returns the report of a command.
func (s Simulator) Command(_ context.Context, c provisioning.Command) (provisioning.Report, error) {
	r := provisioning.Report{Simulated: true}
	remaining := s.remaining(c.At)
	switch suffix := c.ICCID[max(0, len(c.ICCID)-4):]; {
	case suffix == "9001":
		r.Refused = "The simulated operator refuses."
	case suffix == "9002" && remaining > 0:
		r.Pending, r.RetryAfter = true, remaining
	case suffix == "9003":
		r.Pending = true
	case suffix == "9004", suffix == "9005" && remaining > 0:
		return r, unavailable()
	case suffix == "9006" && c.Action == provisioning.Activate:
		r.State = sim.Suspended
	case suffix == "9007" && c.Action == provisioning.Activate:
		r.State = sim.Terminated
	case suffix == "9008" && (c.Action == provisioning.AddService || c.Action == provisioning.RemoveService):
		r.Refused = "The simulated operator does not have this service."
	}
	return r, nil
}

func (s Simulator) remaining(requestedAt time.Time) time.Duration {
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	return Slow - now().Sub(requestedAt)
}
