package provisioning

import (
	"context"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sim"
)

// Suspend orders the suspension of a SIM that has reached a limit; it is idempotent.
// It does nothing for a SIM that is not in service or about to leave it. It returns
// KindUnavailable while another job of the SIM is in progress or the operator is
// unavailable.
func (a *Actions) Suspend(ctx context.Context, acct account.ID, iccid string) error {
	one, err := a.sim(ctx, acct, iccid)
	switch {
	case relay.KindOf(err) == relay.KindNotFound:
		return nil
	case err != nil:
		return err
	case one.Requested != sim.Active: // which is State without a job
		return nil
	case one.Job != "":
		return relay.Errorf(relay.KindUnavailable, "SIM %s: another job is in progress", iccid)
	}
	_, err = a.order(ctx, acct, one, Suspend, Order{ICCID: one.ICCID})
	if relay.KindOf(err) == relay.KindInvalid {
		return relay.Errorf(relay.KindUnavailable, "SIM %s: another request reserved it first: %w", iccid, err)
	}
	return err
}
