package inventory

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/audit"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/rule"
)

const (
	// maxAudited is the number of newest audit entries of an account in which noteDrift looks
	// for the change of a record.
	maxAudited = 1000
	// auditLead is the longest time between an audit entry and the saved time of its change.
	auditLead = time.Minute
)

// Drift returns the fields that differ from their declared values, and the names (see
// document.RecordName) of the records that the API has deleted and the next apply creates again. An
// empty name means all documents. Drift returns a NotFound error for an unknown name.
func (s *Service) Drift(ctx context.Context, name string) (fields []document.Drift, missing []string, err error) {
	stored, err := s.loadSet(ctx)
	if err != nil {
		return nil, nil, err
	}
	names := stored.set.Names()
	if name != "" {
		if !slices.Contains(names, name) {
			return nil, nil, relay.Errorf(relay.KindNotFound, "inventory: no document %s", name)
		}
		names = []string{name}
	}
	for _, name := range names {
		result, err := s.driftOf(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		fields, missing = append(fields, result.Drift...), append(missing, result.Added...)
	}
	return fields, missing, nil
}

// driftOf returns the result of a dry run of a stored document, which has the differences as drift
// and the missing records as added. It excludes applies, because their unfinished changes would
// look like drift, but only for one document at a time, so that an apply does not wait for all.
func (s *Service) driftOf(ctx context.Context, name string) (document.ApplyResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, err := s.loadSet(ctx)
	if err == nil {
		err = s.loadSIMs(ctx, &stored, SIMSelection{Documents: []string{name}})
	}
	if err != nil {
		return document.ApplyResult{}, err
	}
	a := apply{Service: s, result: result{mode: document.Mode{DryRun: true}}, oldSet: stored, set: stored.set, fresh: stored.set.Part(name)}
	err = a.run(ctx)
	return a.report, err
}

// resetAccounts returns the names of the accounts that refs lists by name or id. It returns an Invalid
// error if the document does not declare one of them.
func (s *Service) resetAccounts(ctx context.Context, refs []string, fresh document.Document) (names []string, err error) {
	for _, ref := range refs {
		name := ref
		if id, err := strconv.ParseInt(ref, 10, 64); err == nil {
			a, err := s.Accounts.Account(ctx, relay.AccountID(id))
			if err := ignoreMissing(err); err != nil {
				return nil, err
			}
			name = a.Name
		}
		if !slices.ContainsFunc(fresh.Accounts, func(a document.Account) bool { return a.Name == name }) {
			return nil, relay.Invalid("account", "The document does not declare an account "+ref+".")
		}
		names = append(names, name)
	}
	return names, nil
}

// resets reports whether the apply sets the fields of a kind to their declared values.
func (a *accountApply) resets(kind string) bool {
	if !slices.Contains(a.mode.Reset, kind) {
		return false
	}
	names := a.mode.ResetAccounts
	return len(names) == 0 || slices.Contains(names, a.want.Name)
}

// noteDrift notes a field that keeps its present value, with the user who changed it: the actor of
// the newest audit entry with the target and one of operationWords in its operation. The audit log
// does not contain changes by the account itself.
func (a *accountApply) noteDrift(ctx context.Context, d document.Drift, target string, operationWords ...string) error {
	if a.changes == nil && target != "" {
		entries, _, err := a.Audit.List(ctx, audit.Filter{Account: a.id, Outcome: audit.Done, Limit: maxAudited})
		if err != nil {
			return err
		}
		a.changes = append([]audit.Entry{}, entries...)
	}
	d.Document, d.Account = a.owner, a.want.Name
	change := find(a.changes, func(e audit.Entry) bool {
		return e.Target == target && slices.ContainsFunc(operationWords, func(word string) bool { return strings.Contains(e.Operation, word) })
	})
	switch {
	case change == nil:
	case d.ChangedAt.IsZero():
		d.ChangedAt, d.ChangedBy = change.At, change.Actor
	case !change.At.After(d.ChangedAt) && d.ChangedAt.Sub(change.At) < auditLead:
		d.ChangedBy = change.Actor
	}
	a.report.Drift, a.report.Kept = append(a.report.Drift, d), append(a.report.Kept, d.String())
	return nil
}

// applyDecoder saves a decoder that is new or that the REST API has not changed since the last
// inventory. New mappings of the document are always added. A key that the REST API has deleted or
// mapped to another sensor type stays as it is.
func (a *accountApply) applyDecoder(ctx context.Context, want document.Decoder) error {
	target := decoderOf(want)
	label := a.path + "decoder " + want.ID
	stored, err := a.Devices.Decoder(ctx, a.id, want.ID)
	if relay.KindOf(err) == relay.KindNotFound {
		return a.put(label, false, false, func() error { return a.Devices.CreateDecoder(ctx, a.id, target) })
	}
	if err != nil {
		return err
	}
	var oldDecoder iot.Decoder
	declared := find(a.oldAccount.Decoders, func(d document.Decoder) bool { return d.ID == want.ID })
	if declared != nil {
		oldDecoder = decoderOf(*declared)
	}
	oldSensors := oldDecoder.Sensors
	change := func(stored *iot.Decoder) error {
		sensors := mergeMappings(stored.Sensors, target.Sensors, oldSensors)
		unmapped := *stored // without its mappings
		unmapped.Sensors, oldDecoder.Sensors = nil, nil
		if declared != nil && reflect.DeepEqual(unmapped, oldDecoder) {
			*stored = target
		}
		stored.Sensors = sensors
		return nil
	}
	nextDecoder := stored
	if err := change(&nextDecoder); err != nil {
		return err
	}
	if err := a.noteDecoderDrift(ctx, nextDecoder, target); err != nil {
		return err
	}
	return a.put(label, true, reflect.DeepEqual(nextDecoder, stored), func() error {
		_, err := a.Devices.ChangeDecoder(ctx, a.id, want.ID, change)
		return err
	})
}

// noteDecoderDrift notes the fields and mappings of a decoder that stay as the REST API has set them.
func (a *accountApply) noteDecoderDrift(ctx context.Context, nextDecoder, target iot.Decoder) error {
	var fields []document.Drift
	path := "decoders." + target.ID
	for _, m := range target.Sensors {
		if slices.Contains(nextDecoder.Sensors, m) {
			continue
		}
		d := document.Drift{Path: path + ".sensors." + m.Key, Declared: m.SensorTypeID}
		if have := find(nextDecoder.Sensors, func(have iot.Mapping) bool { return have.Key == m.Key }); have != nil {
			d.Present = have.SensorTypeID
		}
		fields = append(fields, d)
	}
	nextDecoder.Sensors, target.Sensors = nil, nil
	fields = append(fields, differing(path, declaredDecoder(nextDecoder), declaredDecoder(target))...)
	for _, d := range fields {
		d.OverAPI = true
		if err := a.noteDrift(ctx, d, target.ID, "Decoder"); err != nil {
			return err
		}
	}
	return nil
}

// applyRule saves a rule that is new, that the REST API has not changed since the last inventory, or
// that is reset. A rule that the REST API deleted stays deleted until its declaration changes.
func (a *accountApply) applyRule(ctx context.Context, want document.Rule) error {
	target, err := ruleOf(want)
	if err != nil {
		return err
	}
	var declared *rule.Rule // the rule as the last inventory declared it
	if oldRule := find(a.oldAccount.Rules, func(d document.Rule) bool { return d.ID == want.ID }); oldRule != nil && !a.resets("rules") {
		r, err := ruleOf(*oldRule)
		if err != nil {
			return err
		}
		declared = &r
	}
	keep := func(stored *rule.Rule) bool {
		switch {
		case stored == nil:
			return declared != nil && sameRule(*declared, target)
		case sameRule(*stored, target):
			return true
		}
		return declared != nil && !sameRule(*stored, *declared)
	}
	var stored *rule.Rule
	r, err := a.Rules.Rule(ctx, a.id, want.ID)
	a.didRead("rule " + want.ID)
	if err == nil {
		stored = &r
	} else if relay.KindOf(err) != relay.KindNotFound {
		return a.noteUndecryptable(a.path+"rules."+want.ID, err)
	}
	if keep(stored) {
		return a.noteRuleDrift(ctx, stored, target)
	}
	return a.put(a.path+"rule "+want.ID, stored != nil, false, func() error { return a.Rules.Declare(ctx, a.id, target, keep) })
}

// noteRuleDrift notes the fields of a rule that stay as the REST API has set them. stored is nil for a
// deleted rule.
func (a *accountApply) noteRuleDrift(ctx context.Context, stored *rule.Rule, target rule.Rule) error {
	path := "rules." + target.ID
	if stored == nil {
		return a.noteDrift(ctx, document.Drift{Path: path, Deleted: true, Reset: "rules"}, target.ID, "Rule")
	}
	have, err := declaredRule(*stored)
	if err != nil {
		return err
	}
	declared, err := declaredRule(target)
	if err != nil {
		return err
	}
	for _, d := range differing(path, have, declared) {
		d.OverAPI, d.ChangedAt, d.Reset = true, stored.UpdatedAt, "rules"
		if err := a.noteDrift(ctx, d, target.ID, "Rule"); err != nil {
			return err
		}
	}
	return nil
}

// applyRelay saves a relay. Unless relays are reset, an existing relay keeps its action and filter, which
// the REST API can change.
func (a *accountApply) applyRelay(ctx context.Context, want inbound.Relay) error {
	merge := func(stored inbound.Relay) inbound.Relay {
		merged := want
		if !a.resets("relays") {
			merged.Action, merged.Filter, merged.ChangedAt = stored.Action, stored.Filter, stored.ChangedAt
		}
		merged.UpdatedAt = stored.UpdatedAt
		if !reflect.DeepEqual(merged, stored) {
			merged.UpdatedAt = a.Now().UTC()
		}
		return merged
	}
	stored, err := a.Relays.Get(ctx, want.Account, want.Kind, want.ID)
	a.didRead("relay " + want.ID)
	if err != nil && relay.KindOf(err) != relay.KindNotFound {
		return a.noteUndecryptable(a.path+"relays."+want.ID, err)
	}
	exists := err == nil
	if exists && !a.resets("relays") {
		if err := a.noteRelayDrift(ctx, stored, want); err != nil {
			return err
		}
	}
	if exists && reflect.DeepEqual(merge(stored), stored) {
		return nil
	}
	want.UpdatedAt = a.Now().UTC()
	return a.put(a.path+want.String(), exists, false, func() error { return a.Relays.Declare(ctx, want, merge) })
}

// noteRelayDrift notes the fields of a relay that keep their stored values.
func (a *accountApply) noteRelayDrift(ctx context.Context, stored, want inbound.Relay) error {
	fields := func(r inbound.Relay) document.NumberRelay {
		return document.NumberRelay{Action: r.Action.Name, Parameters: slices.Concat(r.Action.Parameters), Filter: r.Filter}
	}
	for _, d := range differing("relays."+want.ID, fields(stored), fields(want)) {
		d.ChangedAt, d.Reset = stored.ChangedAt, "relays"
		if err := a.noteDrift(ctx, d, want.ID, "Relay"); err != nil {
			return err
		}
	}
	return nil
}

// mergeMappings returns the stored mappings after adding or replacing the declared mappings. Mappings
// that an earlier inventory declared keep their stored values.
func mergeMappings(stored, declared, oldMappings []iot.Mapping) []iot.Mapping {
	mappings := slices.Clone(stored)
	for _, m := range declared {
		if slices.Contains(oldMappings, m) {
			continue
		}
		if have := find(mappings, func(have iot.Mapping) bool { return have.Key == m.Key }); have != nil {
			*have = m
		} else {
			mappings = append(mappings, m)
		}
	}
	return mappings
}
