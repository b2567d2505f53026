package sim

import (
	"context"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// Suspend has a SIM suspended that is in service: it is what a limit asks for that
// was reached, and may be asked for again. One that is not in service, or on its
// way out of it, is left alone. It returns KindUnavailable while another job of the
// SIM is in progress, or the operator takes nothing.
func (a *Actions) Suspend(ctx context.Context, acct account.ID, iccid string) error {
	one, err := a.sim(ctx, acct, iccid)
	switch {
	case relay.KindOf(err) == relay.KindNotFound:
		return nil
	case err != nil:
		return err
	case one.Requested != Active: // which is State without a job
		return nil
	case one.Job != "":
		return relay.Errorf(relay.KindUnavailable, "SIM %s: another job is in progress", iccid)
	}
	_, err = a.order(ctx, acct, one, Suspend, Order{ICCID: one.ICCID})
	if relay.KindOf(err) == relay.KindInvalid {
		return relay.Errorf(relay.KindUnavailable, "SIM %s: another was faster: %w", iccid, err)
	}
	return err
}
