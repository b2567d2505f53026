package inventory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/lookup"
)

// apply is one document on its way into the records. Every step may be repeated:
// an apply that broke off is completed by the next. A dry run takes the same steps
// and leaves out the writes.
type apply struct {
	*Service
	mode       Mode
	was        []byte       // what stood, as it is kept
	set        document.Set // what stands, by document; without what a prune removes once that is done
	old, fresh document.Document
	done       Applied
}

func (a *apply) run(ctx context.Context) error {
	a.done = Applied{
		Document: a.fresh.Owner(), DryRun: a.mode.DryRun,
		Accounts: []AppliedAccount{}, Added: []string{}, Changed: []string{}, Removed: []string{}, Kept: []string{},
	}
	if err := a.identities(ctx); err != nil {
		return err
	}
	if err := a.ownership(); err != nil {
		return err
	}
	gone, err := a.planPrune()
	if err != nil {
		return err
	}
	if err := a.catalogue(ctx); err != nil {
		return err
	}
	if err := a.prune(ctx, gone); err != nil {
		return err
	}
	for i := range a.fresh.Accounts {
		if err := a.account(ctx, &a.fresh.Accounts[i]); err != nil {
			return fmt.Errorf("inventory: account %s: %w", a.fresh.Accounts[i].Name, err)
		}
	}
	if err := a.logins(ctx); err != nil {
		return fmt.Errorf("inventory: SOAP usernames: %w", err)
	}
	set := a.set.Join(a.fresh)
	if err := a.trunks(ctx, set.Whole()); err != nil {
		return err
	}
	return a.save(ctx, set)
}

// save keeps what is declared now.
func (a *apply) save(ctx context.Context, set document.Set) error {
	if a.mode.DryRun {
		return nil
	}
	kept, err := json.Marshal(set.Seal())
	if err != nil {
		return fmt.Errorf("inventory: encode: %w", err)
	}
	err = a.Accounts.PutInventory(ctx, a.was, kept)
	if relay.KindOf(err) == relay.KindConflict {
		return fmt.Errorf("%w: %w", errRaced, err)
	}
	return err
}

// ownership refuses what another document declared, or takes it over.
func (a *apply) ownership() error {
	if !a.mode.Adopt {
		return a.set.Conflicts(a.fresh).Err()
	}
	set, taken := a.set.Adopt(a.fresh)
	a.set, a.done.Changed = set, append(a.done.Changed, taken...)
	return nil
}

// put notes what is added or changed, and saves it.
func (a *apply) put(what string, exists, same bool, save func() error) error {
	switch {
	case !exists:
		a.done.Added = append(a.done.Added, what)
	case !same:
		a.done.Changed = append(a.done.Changed, what)
	}
	return a.write(save)
}

// write is what a dry run leaves out.
func (a *apply) write(do func() error) error {
	if a.mode.DryRun {
		return nil
	}
	return do()
}

// catalogue applies what belongs to no account.
func (a *apply) catalogue(ctx context.Context) error {
	for _, t := range a.fresh.SensorTypes {
		at := slices.IndexFunc(a.old.SensorTypes, func(o document.SensorType) bool { return o.ID == t.ID })
		same := at >= 0 && a.old.SensorTypes[at] == t
		if err := a.put("sensor type "+t.ID, at >= 0, same, func() error { return a.Devices.PutSensorType(ctx, iot.SensorType(t)) }); err != nil {
			return err
		}
	}
	for _, n := range a.fresh.Networks {
		at := slices.IndexFunc(a.old.Networks, func(o document.Network) bool { return o.Prefix == n.Prefix })
		same := at >= 0 && a.old.Networks[at] == n
		if err := a.put("network "+n.Prefix, at >= 0, same, func() error { return a.Networks.PutNetwork(ctx, lookup.Network(n)) }); err != nil {
			return err
		}
	}
	return nil
}

// errRaced means that another gateway applied an inventory meanwhile.
var errRaced = errors.New("inventory: not saved")

// identities refuses, before anything is changed, an id or a name that another
// account has.
func (a *apply) identities(ctx context.Context) error {
	stored, err := a.Accounts.Accounts(ctx)
	if err != nil {
		return err
	}
	var mistakes Mistakes
	for i, want := range a.fresh.Accounts {
		for _, have := range stored {
			sameID, sameName := account.ID(want.ID) == have.ID, want.Name == have.Name
			if want.ID != 0 && sameID != sameName {
				mistakes.Add(fmt.Sprintf("accounts[%d].id", i), "account %q has the id %d; an account keeps its id and its name", have.Name, have.ID)
			}
		}
	}
	return mistakes.Err()
}
