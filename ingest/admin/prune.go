package admin

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
)

// prune removes what an earlier inventory declared and this one omits. Accounts
// stay: they may hold messages, history or credit; without their tokens nobody
// can use them.
func (a *apply) prune(ctx context.Context) error {
	if !a.mode.Prune {
		return nil
	}
	gone := inventory.Omitted(a.old, a.fresh)
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
	a.old = without(a.old, gone)
	return nil
}

func (a *apply) pruneAccount(ctx context.Context, lost inventory.Account) error {
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
	for _, r := range relaysOf(lost) {
		if err := a.removed(at+r.String(), a.Relays.Delete(ctx, rec.ID, r.Kind, r.ID)); err != nil {
			return err
		}
	}
	for _, d := range lost.Decoders {
		if err := a.removed(at+"decoder "+d.ID, a.Devices.DeleteDecoder(ctx, rec.ID, d.ID)); err != nil {
			return err
		}
	}
	for _, l := range lost.Locations {
		if err := a.removed(at+"location "+l.ID, a.Devices.DeleteLocation(ctx, rec.ID, l.ID)); err != nil {
			return err
		}
	}
	if !a.names(lost) {
		a.done.Kept = append(a.done.Kept, "account "+lost.Name+": it may hold messages, history or credit")
	}
	return nil
}

// names reports whether the new document names an account.
func (a *apply) names(lost inventory.Account) bool {
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
// records keeps what it says of itself.
func without(old, gone inventory.Document) inventory.Document {
	kept := inventory.Omitted(old, gone)
	for i := range kept.Accounts {
		k := &kept.Accounts[i]
		for _, was := range old.Accounts {
			if was.Name == k.Name {
				k.Credit, k.Permissions, k.SOAP = was.Credit, was.Permissions, was.SOAP
				k.WebhookSecrets, k.CallbackURL = was.WebhookSecrets, was.CallbackURL
			}
		}
	}
	return kept
}
