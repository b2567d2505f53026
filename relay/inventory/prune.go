package inventory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/sim"
)

// planPrune sets pruned to the records that the document declared before and omits now, except
// records that other documents use. planPrune refuses a prune of more records than usual unless
// the mode allows it.
func (a *apply) planPrune(context.Context) error {
	if !a.mode.Prune {
		return nil
	}
	declared := a.set.Part(a.fresh.Owner())
	a.pruned = a.withoutUsed(document.Omitted(declared, a.fresh))
	removals, summary := removalsToAllow(document.RecordNames(declared), document.RecordNames(a.pruned))
	a.report.AllowRemovals = removals
	if removals <= a.mode.AllowRemovals || a.mode.DryRun {
		return nil
	}
	var refusal document.Mistakes
	refusal.Add("allow_removals", "this prune removes %s that the document %q declared; check them with a dry run, then allow %d",
		summary, a.fresh.Owner(), removals)
	return refusal
}

// usualFraction is the divisor of the largest usual prune: a tenth of the records.
const usualFraction = 10

// removalsToAllow returns the number of removals that Mode.AllowRemovals has to allow: 0 if they are
// at most a tenth of the records and not all records of a kind. summary describes the removals:
// "3 of 12 records (decoder: 1 of 1, …)".
func removalsToAllow(owned, pruned []document.RecordName) (removals int, summary string) {
	ownedByKind, prunedByKind := make(map[string]int), make(map[string]int)
	for _, t := range owned {
		ownedByKind[t.Kind]++
	}
	var kinds []string
	for _, t := range pruned {
		if prunedByKind[t.Kind]++; prunedByKind[t.Kind] == 1 {
			kinds = append(kinds, t.Kind)
		}
	}
	unusual := len(pruned)*usualFraction > len(owned)
	for i, kind := range kinds {
		unusual = unusual || prunedByKind[kind] == ownedByKind[kind]
		kinds[i] = fmt.Sprintf("%s: %d of %d", kind, prunedByKind[kind], ownedByKind[kind])
	}
	if unusual {
		removals = len(pruned)
	}
	return removals, fmt.Sprintf("%d of %d records (%s)", len(pruned), len(owned), strings.Join(kinds, ", "))
}

// withoutUsed returns omitted without the records that other documents use.
func (a *apply) withoutUsed(omitted document.Document) document.Document {
	accountIndex := make(map[string]int, len(omitted.Accounts))
	for i, account := range omitted.Accounts {
		accountIndex[account.Name] = i
	}
	for _, part := range a.set.Without(a.fresh.Owner()).Parts() {
		for _, acct := range part.Accounts {
			omitted.SensorTypes = slices.DeleteFunc(omitted.SensorTypes, func(t document.SensorType) bool {
				return a.noteUsed("sensor type "+t.ID, part, acct, "decoder", slices.IndexFunc(acct.Decoders, func(d document.Decoder) bool {
					return slices.ContainsFunc(d.Sensors, func(m document.Mapping) bool { return m.SensorTypeID == t.ID })
				}))
			})
			if i, ok := accountIndex[acct.Name]; ok {
				omitted.Accounts[i].SIMs = slices.DeleteFunc(omitted.Accounts[i].SIMs, func(s document.SIM) bool {
					return a.noteUsed("account "+acct.Name+": SIM "+s.ICCID, part, acct, "geo relay", slices.IndexFunc(acct.Relays.Geo, func(r document.GeoRelay) bool { return r.ICCID == s.ICCID }))
				})
			}
		}
	}
	return omitted
}

// noteUsed notes that a record is kept if a record of another document uses it, and reports
// whether this is the case. index is the position of the using record; negative if there is none.
func (a *apply) noteUsed(label string, part document.Document, acct document.Account, kind string, index int) bool {
	if index >= 0 {
		a.report.Kept = append(a.report.Kept, fmt.Sprintf("%s: a %s of account %s in the document %q uses it", label, kind, acct.Name, part.Owner()))
	}
	return index >= 0
}

// prune removes the records of pruned. It keeps accounts, because they may have messages, history or
// credit. An account without tokens cannot be used.
func (a *apply) prune(ctx context.Context) error {
	if !a.mode.Prune {
		return nil
	}
	declared := a.set.Part(a.fresh.Owner())
	a.setCurrent(a.set.With(document.Prune(declared, a.pruned, a.fresh)))
	owners, named := a.set.Owners(), document.IndexOf(a.fresh.Accounts)
	for _, omitted := range a.pruned.Accounts {
		undeclared := named.Find(omitted) < 0 && owners.OwnerOf(omitted) == ""
		if err := a.pruneAccount(ctx, omitted, undeclared); err != nil {
			return fmt.Errorf("inventory: prune account %s: %w", omitted.Name, err)
		}
	}
	var removals []removal
	for _, t := range a.pruned.SensorTypes {
		removals = append(removals, removal{"sensor type " + t.ID, func() error { return a.Devices.DeleteSensorType(ctx, t.ID) }})
	}
	for _, n := range a.pruned.Networks {
		removals = append(removals, removal{"network " + n.Prefix, func() error { return a.Networks.DeleteNetwork(ctx, n.Prefix) }})
	}
	return a.removeAll("", removals)
}

// removal is a record that a prune removes.
type removal struct {
	label  string
	remove func() error
}

// removeAll removes records and notes them. path is the prefix of their labels.
func (a *apply) removeAll(path string, removals []removal) error {
	for _, r := range removals {
		if err := a.noteRemoved(path+r.label, a.write(r.remove)); err != nil {
			return err
		}
	}
	return nil
}

// pruneAccount removes the omitted records of an account. undeclared means that no document
// declares the account any more.
func (a *apply) pruneAccount(ctx context.Context, omitted document.Account, undeclared bool) error {
	rec, err := a.Accounts.AccountByName(ctx, omitted.Name)
	if err != nil {
		return ignoreMissing(err)
	}
	path := "account " + omitted.Name + ": "
	var removals []removal
	for i, t := range tokensOf(rec.ID, omitted) {
		removals = append(removals, removal{"token " + omitted.Tokens[i].Label(), func() error { return a.Accounts.DeleteToken(ctx, t) }})
	}
	if omitted.SOAP != nil {
		removals = append(removals, removal{"SOAP username " + omitted.SOAP.Username, func() error { return a.Accounts.DeleteLogin(ctx, omitted.SOAP.Username) }})
	}
	for _, r := range relaysOf(omitted) {
		removals = append(removals, removal{r.String(), func() error { return a.Relays.Delete(ctx, rec.ID, r.Kind, r.ID) }})
	}
	for _, r := range omitted.Rules {
		removals = append(removals, removal{"rule " + r.ID, func() error { return a.Rules.Delete(ctx, rec.ID, r.ID) }})
	}
	for _, d := range omitted.Decoders {
		removals = append(removals, removal{"decoder " + d.ID, func() error { return a.Devices.DeleteDecoder(ctx, rec.ID, d.ID) }})
	}
	for _, s := range omitted.SIMs {
		removals = append(removals, removal{"SIM " + s.ICCID, func() error { return a.SIMs.Delete(ctx, rec.ID, sim.ICCID(s.ICCID)) }})
	}
	for _, l := range omitted.Locations {
		removals = append(removals, removal{"location " + l.ID, func() error { return a.Devices.DeleteLocation(ctx, rec.ID, l.ID) }})
	}
	for _, t := range omitted.SIP.Trunks {
		removals = append(removals, removal{"trunk " + t.Label(), func() error { return a.Trunks.PutTrunks(ctx, rec.ID, trunksOf(a.declaredAccount(omitted))) }})
	}
	if err := a.removeAll(path, removals); err != nil {
		return err
	}
	for _, l := range omitted.Ledgers {
		if err := a.pruneLedger(ctx, rec.ID, path, l.ID); err != nil {
			return err
		}
	}
	if undeclared {
		a.report.Kept = append(a.report.Kept, "account "+omitted.Name+": it may hold messages, history or credit")
	}
	return nil
}

// pruneLedger removes a ledger unless it has a history.
func (a *apply) pruneLedger(ctx context.Context, acct relay.AccountID, path, id string) error {
	remove := func() error { return a.Ledgers.Delete(ctx, acct, id) }
	if a.mode.DryRun {
		remove = func() error {
			log, err := a.Ledgers.Log(ctx, acct, id)
			if err == nil && log.Entries > 0 {
				err = relay.Errorf(relay.KindConflict, "ledger %s: it has a history", id) // like Ledgers.Delete
			}
			return err
		}
	}
	err := remove()
	if relay.KindOf(err) == relay.KindConflict {
		a.report.Kept = append(a.report.Kept, path+"ledger "+id+": it has a history")
		return nil
	}
	return a.noteRemoved(path+"ledger "+id, err)
}

// noteRemoved notes a removed record. A record that was missing counts as removed.
func (a *apply) noteRemoved(label string, err error) error {
	if err = ignoreMissing(err); err == nil {
		a.report.Removed = append(a.report.Removed, label)
	}
	return err
}

func ignoreMissing(err error) error {
	if relay.KindOf(err) == relay.KindNotFound {
		return nil
	}
	return err
}
