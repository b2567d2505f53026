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

// apply applies a document. All steps may be repeated: the next apply completes a failed apply. A
// dry run takes the same steps without the writes.
type apply struct {
	*Service
	result
	oldSet   storedSet
	set      document.Set      // the present records by document
	old      document.Document // the merged set
	oldIndex document.Index    // of the accounts of old
	fresh    document.Document // the document to apply
	pruned   document.Document // the records that a prune removes
}

// result collects the changes of an apply.
type result struct {
	mode   document.Mode
	report document.ApplyResult
}

func (a *apply) run(ctx context.Context) error {
	a.report = document.ApplyResult{
		Document: a.fresh.Owner(), DryRun: a.mode.DryRun,
		Accounts: []document.AppliedAccount{}, Added: []string{}, Changed: []string{}, Removed: []string{}, Kept: []string{},
	}
	a.setCurrent(a.set)
	if a.mode.Compare {
		a.report.Before = document.Mask(a.old)
	}
	for _, step := range []func(context.Context) error{a.checkIdentities, a.resolveOwnership, a.planPrune, a.applyCatalogue, a.prune, a.applyAccounts} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := a.applyLogins(ctx); err != nil {
		return fmt.Errorf("inventory: SOAP usernames: %w", err)
	}
	set := a.set.Join(a.fresh)
	merged := set.Merged()
	if a.mode.Compare {
		a.report.After = document.Mask(merged)
	}
	if err := a.applyTrunks(ctx, merged); err != nil {
		return err
	}
	return a.save(ctx, set)
}

// setCurrent sets the present records to set.
func (a *apply) setCurrent(set document.Set) {
	a.set, a.old = set, set.Merged()
	a.oldIndex = document.IndexOf(a.old.Accounts)
}

func (a *apply) save(ctx context.Context, set document.Set) error {
	if a.mode.DryRun {
		return nil
	}
	err := a.saveSet(ctx, a.oldSet, set.Seal())
	if relay.KindOf(err) == relay.KindConflict {
		return fmt.Errorf("%w: %w", errRaced, err)
	}
	return err
}

// resolveOwnership refuses records that another document owns, or, with Adopt, takes them over.
func (a *apply) resolveOwnership(context.Context) error {
	if !a.mode.Adopt {
		return a.set.Conflicts(a.fresh).Err()
	}
	set, adopted := a.set.Adopt(a.fresh)
	a.set, a.report.Changed = set, append(a.report.Changed, adopted...)
	return nil
}

// noteChange notes a record that is added or changed.
func (r *result) noteChange(label string, exists, same bool) {
	switch {
	case !exists:
		r.report.Added = append(r.report.Added, label)
	case !same:
		r.report.Changed = append(r.report.Changed, label)
	}
}

// noteUndecryptable notes a record that is kept because it cannot be decrypted. It returns other errors
// unchanged.
func (r *result) noteUndecryptable(label string, err error) error {
	if !errors.Is(err, relay.ErrUndecryptable) {
		return err
	}
	r.report.Kept = append(r.report.Kept, label+": kept as it is; "+relay.ErrUndecryptable.Error())
	return nil
}

// differing returns the fields in which a stored record differs from the declared one. path is the
// path of the record.
func differing[T any](path string, stored, declared T) (fields []document.Drift) {
	storedFields, declaredFields := reflect.ValueOf(stored), reflect.ValueOf(declared)
	for i := range storedFields.NumField() {
		present, declared := storedFields.Field(i).Interface(), declaredFields.Field(i).Interface()
		if !reflect.DeepEqual(present, declared) {
			name, _, _ := strings.Cut(storedFields.Type().Field(i).Tag.Get("json"), ",")
			fields = append(fields, document.Drift{Path: path + "." + name, Declared: declared, Present: present})
		}
	}
	return fields
}

// put notes and saves a record that is added or changed.
func (r *result) put(label string, exists, same bool, save func() error) error {
	r.noteChange(label, exists, same)
	return r.write(save)
}

// putAll saves records that only inventories change. kind is the prefix of their labels, and
// oldRecords are the records that earlier inventories declared.
func putAll[T comparable](r *result, kind string, records, oldRecords []T, id func(T) string, save func(T) error) error {
	for _, record := range records {
		have := find(oldRecords, func(b T) bool { return id(b) == id(record) })
		if err := r.put(kind+id(record), have != nil, have != nil && *have == record, func() error { return save(record) }); err != nil {
			return err
		}
	}
	return nil
}

// find returns the first matching element of a list; nil if none matches.
func find[T any](list []T, matches func(T) bool) *T {
	if i := slices.IndexFunc(list, matches); i >= 0 {
		return &list[i]
	}
	return nil
}

// write calls save, except in a dry run.
func (r *result) write(save func() error) error {
	if r.mode.DryRun {
		return nil
	}
	return save()
}

// applyCatalogue applies the records that do not belong to an account.
func (a *apply) applyCatalogue(ctx context.Context) error {
	err := putAll(&a.result, "sensor type ", a.fresh.SensorTypes, a.old.SensorTypes,
		func(t document.SensorType) string { return t.ID },
		func(t document.SensorType) error { return a.Devices.PutSensorType(ctx, iot.SensorType(t)) })
	if err != nil {
		return err
	}
	return putAll(&a.result, "network ", a.fresh.Networks, a.old.Networks,
		func(n document.Network) string { return n.Prefix },
		func(n document.Network) error { return a.Networks.PutNetwork(ctx, lookup.Network(n)) })
}

// errRaced means that another gateway applied an inventory at the same time.
var errRaced = errors.New("inventory: not saved")

// checkIdentities refuses an id or a name of another account before the first write.
func (a *apply) checkIdentities(ctx context.Context) error {
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
