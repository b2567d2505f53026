package inventory

import (
	"context"
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
	notes
	was   standing
	set   document.Set      // what stands, by document; without what a prune removes once that is done
	old   document.Document // the set as one
	known document.Index    // of its accounts
	fresh document.Document
}

// notes are what an apply does.
type notes struct {
	mode document.Mode
	done document.Applied
}

func (a *apply) run(ctx context.Context) error {
	a.done = document.Applied{
		Document: a.fresh.Owner(), DryRun: a.mode.DryRun,
		Accounts: []document.AppliedAccount{}, Added: []string{}, Changed: []string{}, Removed: []string{}, Kept: []string{},
	}
	a.stand(a.set)
	if a.mode.Compare {
		a.done.Before = document.Mask(a.old)
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
	if err := a.accounts(ctx); err != nil {
		return err
	}
	if err := a.logins(ctx); err != nil {
		return fmt.Errorf("inventory: SOAP usernames: %w", err)
	}
	set := a.set.Join(a.fresh)
	whole := set.Whole()
	if a.mode.Compare {
		a.done.After = document.Mask(whole)
	}
	if err := a.trunks(ctx, whole); err != nil {
		return err
	}
	return a.save(ctx, set)
}

// stand takes a set as what stands.
func (a *apply) stand(set document.Set) {
	a.set, a.old = set, set.Whole()
	a.known = document.IndexOf(a.old.Accounts)
}

// save keeps what is declared now.
func (a *apply) save(ctx context.Context, set document.Set) error {
	if a.mode.DryRun {
		return nil
	}
	err := a.keep(ctx, a.was, set.Seal())
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

// note notes what is added or changed.
func (n *notes) note(what string, exists, same bool) {
	switch {
	case !exists:
		n.done.Added = append(n.done.Added, what)
	case !same:
		n.done.Changed = append(n.done.Changed, what)
	}
}

// put notes what is added or changed, and saves it.
func (n *notes) put(what string, exists, same bool, save func() error) error {
	n.note(what, exists, same)
	return n.write(save)
}

// write is what a dry run leaves out.
func (n *notes) write(do func() error) error {
	if n.mode.DryRun {
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
	byID, byName := make(map[int64]account.Account), make(map[string]account.Account)
	for _, have := range stored {
		byID[int64(have.ID)], byName[have.Name] = have, have
	}
	var mistakes document.Mistakes
	for i, want := range a.fresh.Accounts {
		for _, have := range []account.Account{byID[want.ID], byName[want.Name]} {
			sameID, sameName := account.ID(want.ID) == have.ID, want.Name == have.Name
			if want.ID != 0 && have.ID != 0 && sameID != sameName {
				mistakes.Add(fmt.Sprintf("accounts[%d].id", i), "account %q has the id %d; an account keeps its id and its name", have.Name, have.ID)
			}
		}
	}
	return mistakes.Err()
}
