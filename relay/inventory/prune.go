package inventory

import (
	"context"
	"fmt"
	"slices"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/sim"
)

// prune removes what an earlier inventory declared and this one omits. Accounts
// stay: they may hold messages, history or credit; without their tokens nobody
// can use them.
func (a *apply) prune(ctx context.Context) error {
	if !a.mode.Prune {
		return nil
	}
	gone := document.Omitted(a.old, a.fresh)
	for _, lost := range gone.Accounts {
		if err := a.pruneAccount(ctx, lost); err != nil {
			return fmt.Errorf("inventory: prune account %s: %w", lost.Name, err)
		}
	}
	for _, t := range gone.SensorTypes {
		if err := a.removed("sensor type "+t.ID, a.Devices.DeleteSensorType(ctx, t.ID)); err != nil {
			return err
		}
	}
	for _, n := range gone.Networks {
		if err := a.removed("network "+n.Prefix, a.Networks.DeleteNetwork(ctx, n.Prefix)); err != nil {
			return err
		}
	}
	a.old = a.without(gone)
	return nil
}

func (a *apply) pruneAccount(ctx context.Context, lost document.Account) error {
	rec, err := a.Accounts.AccountByName(ctx, lost.Name)
	if err != nil {
		return ignoreMissing(err)
	}
	at := "account " + lost.Name + ": "
	for i, t := range tokensOf(rec.ID, lost) {
		if err := a.removed(fmt.Sprintf("%stoken %d", at, i+1), a.Accounts.DeleteToken(ctx, t)); err != nil {
			return err
		}
	}
	if lost.SOAP != nil {
		if err := a.removed(at+"SOAP username "+lost.SOAP.Username, a.Accounts.DeleteLogin(ctx, lost.SOAP.Username)); err != nil {
			return err
		}
	}
	for _, r := range relaysOf(lost) {
		if err := a.removed(at+r.String(), a.Relays.Delete(ctx, rec.ID, r.Kind, r.ID)); err != nil {
			return err
		}
	}
	for _, r := range lost.Rules {
		if err := a.removed(at+"rule "+r.ID, a.Rules.Delete(ctx, rec.ID, r.ID)); err != nil {
			return err
		}
	}
	for _, d := range lost.Decoders {
		if err := a.removed(at+"decoder "+d.ID, a.Devices.DeleteDecoder(ctx, rec.ID, d.ID)); err != nil {
			return err
		}
	}
	for _, s := range lost.SIMs {
		if err := a.removed(at+"SIM "+s.ICCID, a.SIMs.Delete(ctx, rec.ID, sim.ICCID(s.ICCID))); err != nil {
			return err
		}
	}
	for _, l := range lost.Locations {
		if err := a.removed(at+"location "+l.ID, a.Devices.DeleteLocation(ctx, rec.ID, l.ID)); err != nil {
			return err
		}
	}
	for _, l := range lost.Ledgers {
		err := a.Ledgers.Delete(ctx, rec.ID, l.ID)
		if relay.KindOf(err) == relay.KindConflict {
			a.done.Kept = append(a.done.Kept, at+"ledger "+l.ID+": it has a history")
			continue
		}
		if err := a.removed(at+"ledger "+l.ID, err); err != nil {
			return err
		}
	}
	if len(lost.SIP.Trunks) > 0 && !a.names(lost) {
		if err := a.removed(at+"trunks", a.Trunks.PutTrunks(ctx, rec.ID, nil)); err != nil {
			return err
		}
	}
	if !a.names(lost) {
		a.done.Kept = append(a.done.Kept, "account "+lost.Name+": it may hold messages, history or credit")
	}
	return nil
}

// names reports whether the new document names an account.
func (a *apply) names(lost document.Account) bool {
	for _, f := range a.fresh.Accounts {
		if f.Name == lost.Name || f.ID != 0 && f.ID == lost.ID {
			return true
		}
	}
	return false
}

// removed notes what is gone; what was gone already is fine.
func (a *apply) removed(what string, err error) error {
	if err = ignoreMissing(err); err == nil {
		a.done.Removed = append(a.done.Removed, what)
	}
	return err
}

func ignoreMissing(err error) error {
	if relay.KindOf(err) == relay.KindNotFound {
		return nil
	}
	return err
}

// without is the old declaration less what was removed. An account that lost
// records keeps what it says of itself; one that is named no more goes.
func (a *apply) without(gone document.Document) document.Document {
	kept := document.Omitted(a.old, gone)
	rest := kept.Accounts
	kept.Accounts = nil
	for _, was := range a.old.Accounts {
		if !a.names(was) {
			continue
		}
		k := document.Account{}
		if at := slices.IndexFunc(rest, func(r document.Account) bool { return r.Name == was.Name }); at >= 0 {
			k = rest[at]
		}
		if !slices.ContainsFunc(gone.Accounts, func(g document.Account) bool { return g.Name == was.Name }) {
			k = was // it lost nothing
		}
		k.ID, k.Name = was.ID, was.Name
		k.Credit, k.Permissions = was.Credit, was.Permissions
		k.WebhookSecrets, k.CallbackURL = was.WebhookSecrets, was.CallbackURL
		kept.Accounts = append(kept.Accounts, k)
	}
	return kept
}
