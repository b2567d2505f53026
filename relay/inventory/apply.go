package inventory

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

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
	oldStanding standing
	set         document.Set      // what stands, by document; without what a prune removes once that is done
	old         document.Document // the set as one
	known       document.Index    // of its accounts
	fresh       document.Document
	gone        document.Document // what a prune removes
}

// notes are the changes of an apply.
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
	for _, step := range []func(context.Context) error{a.identities, a.ownership, a.planPrune, a.catalogue, a.prune, a.accounts} {
		if err := step(ctx); err != nil {
			return err
		}
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
	err := a.keep(ctx, a.oldStanding, set.Seal())
	if relay.KindOf(err) == relay.KindConflict {
		return fmt.Errorf("%w: %w", errRaced, err)
	}
	return err
}

// ownership refuses what another document declared, or takes it over.
func (a *apply) ownership(context.Context) error {
	if !a.mode.Adopt {
		return a.set.Conflicts(a.fresh).Err()
	}
	set, taken := a.set.Adopt(a.fresh)
	a.set, a.done.Changed = set, append(a.done.Changed, taken...)
	return nil
}

// note notes what is added or changed.
func (n *notes) note(label string, exists, same bool) {
	switch {
	case !exists:
		n.done.Added = append(n.done.Added, label)
	case !same:
		n.done.Changed = append(n.done.Changed, label)
	}
}

// keepUnopened notes a record that stays as it is because it does not open, and returns any
// other error.
func (n *notes) keepUnopened(label string, err error) error {
	if !errors.Is(err, relay.ErrUnopened) {
		return err
	}
	n.done.Kept = append(n.done.Kept, label+": kept as it is; "+relay.ErrUnopened.Error())
	return nil
}

// differing returns the fields in which a record as it is stored differs from what a
// document declares: the path of each, below that of the record, and both values.
func differing[T any](path string, stored, declared T) (fields []document.Drift) {
	x, y := reflect.ValueOf(stored), reflect.ValueOf(declared)
	for i := range x.NumField() {
		present, declared := x.Field(i).Interface(), y.Field(i).Interface()
		if !reflect.DeepEqual(present, declared) {
			name, _, _ := strings.Cut(x.Type().Field(i).Tag.Get("json"), ",")
			fields = append(fields, document.Drift{Path: path + "." + name, Declared: declared, Present: present})
		}
	}
	return fields
}

// put notes what is added or changed, and saves it.
func (n *notes) put(label string, exists, same bool, save func() error) error {
	n.note(label, exists, same)
	return n.write(save)
}

// putAll puts all records of one kind that only inventories change; before are those
// that an earlier inventory declared.
func putAll[T comparable](n *notes, kind string, want, oldTimes []T, id func(T) string, save func(T) error) error {
	for _, record := range want {
		have := find(oldTimes, func(b T) bool { return id(b) == id(record) })
		if err := n.put(kind+id(record), have != nil, have != nil && *have == record, func() error { return save(record) }); err != nil {
			return err
		}
	}
	return nil
}

// find returns the first entry of a list that is looked for; nil if there is none.
func find[T any](list []T, fn func(T) bool) *T {
	if i := slices.IndexFunc(list, fn); i >= 0 {
		return &list[i]
	}
	return nil
}

// write is the step that a dry run omits.
func (n *notes) write(do func() error) error {
	if n.mode.DryRun {
		return nil
	}
	return do()
}

// catalogue applies what belongs to no account.
func (a *apply) catalogue(ctx context.Context) error {
	err := putAll(&a.notes, "sensor type ", a.fresh.SensorTypes, a.old.SensorTypes,
		func(t document.SensorType) string { return t.ID },
		func(t document.SensorType) error { return a.Devices.PutSensorType(ctx, iot.SensorType(t)) })
	if err != nil {
		return err
	}
	return putAll(&a.notes, "network ", a.fresh.Networks, a.old.Networks,
		func(n document.Network) string { return n.Prefix },
		func(n document.Network) error { return a.Networks.PutNetwork(ctx, lookup.Network(n)) })
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
			sameID, sameName := relay.AccountID(want.ID) == have.ID, want.Name == have.Name
			if want.ID != 0 && have.ID != 0 && sameID != sameName {
				mistakes.Add(fmt.Sprintf("accounts[%d].id", i), "account %q has the id %d; an account keeps its id and its name", have.Name, have.ID)
			}
		}
	}
	return mistakes.Err()
}
