package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"golang.org/x/sync/errgroup"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/audit"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/rule"
	"github.com/penstock/penstock/relay/sim"
)

const (
	// atOnce is the number of accounts that are applied at one time: each needs several
	// commits.
	atOnce = 8
	// accountsAtOnce is the number of accounts that are saved at one time: few, so that
	// little time passes after they were read.
	accountsAtOnce = 100
)

// accounts applies the accounts, each with its records, and then their tokens, so that
// nothing uses an incomplete account. What one account may give up for another, numbers and
// SIMs, is applied in the order of the document. In a dry run a new account has no id: no
// record is found with it.
func (a *apply) accounts(ctx context.Context) error {
	accountApplies, err := a.settings(ctx)
	if err != nil {
		return err
	}
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i := range accountApplies {
		g.Go(func() error {
			return accountApplies[i].named(relay.Recovered("records of an account", func() error { return accountApplies[i].ownRecords(within) }))
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var tokens []account.Token
	for _, apply := range accountApplies {
		if err := apply.named(apply.sharedRecords(ctx)); err != nil {
			return errors.Join(err, a.putTokens(ctx, tokens))
		}
		a.done.Added, a.done.Changed = append(a.done.Added, apply.done.Added...), append(a.done.Changed, apply.done.Changed...)
		a.done.Kept, a.done.Drift = append(a.done.Kept, apply.done.Kept...), append(a.done.Drift, apply.done.Drift...)
		a.done.Accounts = append(a.done.Accounts, apply.done.Accounts...)
		tokens = append(tokens, apply.tokens...)
	}
	return a.putTokens(ctx, tokens)
}

func (a *apply) putTokens(ctx context.Context, tokens []account.Token) error {
	return a.write(func() error { return a.Accounts.PutTokens(ctx, tokens) })
}

// accountApply is an account on its way into the records.
type accountApply struct {
	*Service
	notes
	want, oldAccount document.Account // as the document and an earlier one declare it
	id               relay.AccountID
	exists           bool            // before
	path             string          // how its records are named: "account acme: "
	tokens           []account.Token // to be saved
	changes          []audit.Entry   // over the API, newest first; nil until keep needs them
	owner            string          // name of the document
}

// settings saves the accounts themselves.
func (a *apply) settings(ctx context.Context) ([]*accountApply, error) {
	accountApplies := make([]*accountApply, 0, len(a.fresh.Accounts))
	for chunk := range slices.Chunk(a.fresh.Accounts, accountsAtOnce) {
		saved, err := a.saveSome(ctx, chunk)
		if err != nil {
			return nil, fmt.Errorf("inventory: %w", err)
		}
		accountApplies = append(accountApplies, saved...)
	}
	return accountApplies, nil
}

// saveSome saves some accounts, and gives them their ids.
func (a *apply) saveSome(ctx context.Context, accounts []document.Account) ([]*accountApply, error) {
	accountApplies, saved := make([]*accountApply, len(accounts)), make([]*accountApply, 0, len(accounts))
	recs, read := make([]account.Account, 0, len(accounts)), make([]account.Account, 0, len(accounts))
	for i, want := range accounts {
		oldAccount, err := a.Accounts.AccountByName(ctx, want.Name)
		a.didRead("account " + want.Name)
		exists := relay.KindOf(err) != relay.KindNotFound
		apply := &accountApply{
			Service: a.Service, notes: notes{mode: a.mode}, want: want, oldAccount: a.before(want), id: oldAccount.ID, exists: exists,
			path: "account " + want.Name + ": ", owner: a.fresh.Owner(),
		}
		accountApplies[i] = apply
		if err = ignoreMissing(err); err != nil {
			if err := apply.keepUnopened("account "+want.Name, err); err != nil {
				return nil, err
			}
			continue
		}
		rec := record(oldAccount, want, apply.oldAccount)
		recs, read, saved = append(recs, rec), append(read, oldAccount), append(saved, apply)
		apply.note("account "+want.Name, exists, reflect.DeepEqual(rec, oldAccount))
		if want.CallbackURL != "" && rec.CallbackURL != want.CallbackURL {
			d := document.Drift{Path: "callback_url", Declared: want.CallbackURL, Present: rec.CallbackURL, OverAPI: true}
			if err := apply.keep(ctx, d, want.Name, "changeAccount"); err != nil {
				return nil, err
			}
		}
	}
	if !a.mode.DryRun {
		ids, err := a.Accounts.PutAccounts(ctx, recs, read)
		if err != nil {
			return nil, err
		}
		for i, id := range ids {
			saved[i].id = id
		}
	}
	for i, apply := range accountApplies {
		accounts[i].ID = int64(apply.id)
		if apply.id != 0 {
			apply.done.Accounts = []document.AppliedAccount{{ID: int64(apply.id), Name: apply.want.Name}}
		}
	}
	return accountApplies, nil
}

// named says whose an error is.
func (a *accountApply) named(err error) error {
	if err != nil {
		err = fmt.Errorf("inventory: account %s: %w", a.want.Name, err)
	}
	return err
}

// ownRecords saves what no other account can have.
func (a *accountApply) ownRecords(ctx context.Context) error {
	if err := a.credit(ctx); err != nil {
		return err
	}
	stored, err := a.Devices.Locations(ctx, a.id) // REST may have created one that is declared now
	if err != nil {
		return err
	}
	err = putAll(&a.notes, a.path+"location ", locationsOf(a.want), stored,
		func(l iot.Location) string { return l.ID },
		func(l iot.Location) error { return a.Devices.PutLocation(ctx, a.id, l) })
	if err != nil {
		return err
	}
	for _, d := range a.want.Decoders {
		if err := a.decoder(ctx, d); err != nil {
			return err
		}
	}
	for _, r := range a.want.Rules {
		if err := a.rule(ctx, r); err != nil {
			return err
		}
	}
	return putAll(&a.notes, a.path+"ledger ", a.want.Ledgers, a.oldAccount.Ledgers,
		func(l document.Ledger) string { return l.ID },
		func(l document.Ledger) error { return a.Ledgers.Put(ctx, a.id, ledgerOf(l)) })
}

// sharedRecords saves what another account may have had, and notes the tokens.
func (a *accountApply) sharedRecords(ctx context.Context) error {
	for _, r := range relaysOf(a.want) {
		r.Account = a.id
		if err := a.relay(ctx, r); err != nil {
			return err
		}
	}
	if err := a.sims(ctx, simsOf(a.want)); err != nil {
		return err
	}
	return a.noteTokens(ctx)
}

// credit gives a new account what it begins with. An existing one keeps what it
// has, unless credit is reset.
func (a *accountApply) credit(ctx context.Context) error {
	var credits int64
	if a.want.Credit != nil {
		credits = *a.want.Credit
	}
	if !a.mode.DryRun {
		if err := a.Credit.Open(ctx, a.id, credits, a.Now()); err != nil {
			return err
		}
	}
	if a.want.Credit == nil || !a.exists {
		return nil
	}
	balance, err := a.Credit.Balance(ctx, a.id)
	if err != nil {
		return err
	}
	if !a.resets("credit") {
		if balance != credits {
			return a.keep(ctx, document.Drift{Path: "credit", Declared: credits, Present: balance, Reset: "credit"}, "")
		}
		return nil
	}
	return a.put(a.path+"credit", true, balance == credits, func() error { return a.Credit.Set(ctx, a.id, credits, a.Now()) })
}

// simBatch is the number of SIMs that are compared at one time.
const simBatch = 2000

// maxKeptSIMs bounds the fields of an account's SIMs that are listed as kept: an account
// may have declared thousands of SIMs as pending that are active now.
const maxKeptSIMs = 100

func (a *accountApply) sims(ctx context.Context, sims []sim.SIM) error {
	reset, keptFields := a.resets("sims"), 0
	for chunk := range slices.Chunk(sims, simBatch) {
		iccids := make([]sim.ICCID, len(chunk))
		for i, s := range chunk {
			iccids[i] = s.ICCID
		}
		have, err := a.SIMs.GetMany(ctx, a.id, iccids)
		if err != nil {
			return err
		}
		for _, want := range chunk {
			oldSim, exists := have[want.ICCID]
			if exists && !reset {
				for _, field := range differing("sims."+string(want.ICCID), livingFields(oldSim), livingFields(want)) {
					if keptFields++; keptFields > maxKeptSIMs {
						continue
					}
					field.Reset = "sims"
					if err := a.keep(ctx, field, string(want.ICCID), ""); err != nil {
						return err
					}
				}
			}
			if exists && reflect.DeepEqual(oldSim, sim.Declared(oldSim, want, reset)) {
				continue
			}
			a.note(a.path+"SIM "+string(want.ICCID), exists, false)
		}
	}
	if added := keptFields - maxKeptSIMs; added > 0 {
		a.done.Kept = append(a.done.Kept, fmt.Sprintf("%ssims: %d more fields: kept as they are; --reset sims takes the document's", a.path, added))
	}
	return a.write(func() error { return a.SIMs.Declare(ctx, a.id, sims, reset) })
}

// livingFields returns the fields of a SIM that REST and jobs change, as a document has
// them.
func livingFields(one sim.SIM) document.SIM {
	return document.SIM{CurrentState: string(one.State), Service4G: one.Service4G, Service5G: one.Service5G}
}

// noteTokens keeps the tokens for the end of the apply. One that the admin API made is as
// good as a declared one.
func (a *accountApply) noteTokens(ctx context.Context) error {
	declared := tokensOf(a.id, a.oldAccount)
	a.tokens = withSecrets(tokensOf(a.id, a.want), declared)
	for i, t := range a.tokens {
		have := find(declared, func(d account.Token) bool { return d.Hash == t.Hash })
		if have == nil {
			stored, err := a.Accounts.Token(ctx, t.Hash)
			if err := ignoreMissing(err); err != nil && !errors.Is(err, relay.ErrUnopened) {
				return err
			}
			if err == nil && stored.Account == a.id {
				have, a.tokens[i].CreatedAt, t.CreatedAt = &stored, stored.CreatedAt, stored.CreatedAt
			}
		}
		a.note(a.path+"token "+a.want.Tokens[i].Label(), have != nil, have != nil && reflect.DeepEqual(*have, t))
	}
	return nil
}

// trunks saves the trunks of the accounts that the document names: those that
// other documents or earlier inventories declared stay.
func (a *apply) trunks(ctx context.Context, whole document.Document) error {
	index := document.IndexOf(whole.Accounts)
	for _, want := range a.fresh.Accounts {
		oldTrunks := a.before(want).SIP.Trunks
		for _, t := range want.SIP.Trunks {
			exists := slices.ContainsFunc(oldTrunks, func(b document.Trunk) bool { return b.Label() == t.Label() })
			a.note("account "+want.Name+": trunk "+t.Label(), exists, true)
		}
		trunks := trunksOf(whole.Accounts[index.Find(want)])
		if err := a.write(func() error { return a.Trunks.PutTrunks(ctx, relay.AccountID(want.ID), trunks) }); err != nil {
			return err
		}
	}
	return nil
}

// before returns what an earlier inventory declared of an account.
func (a *apply) before(want document.Account) document.Account {
	if i := a.known.Find(want); i >= 0 {
		return a.old.Accounts[i]
	}
	return document.Account{}
}

// record is the account as it shall be saved: what only an inventory sets is replaced where
// it is given; the callback, which REST can change, only while it still has the value of the
// last inventory.
func record(rec account.Account, want, oldAccount document.Account) account.Account {
	if rec.CallbackURL == oldAccount.CallbackURL {
		rec.CallbackURL = cmp.Or(want.CallbackURL, rec.CallbackURL)
	}
	rec.ID, rec.Name = cmp.Or(relay.AccountID(want.ID), rec.ID), want.Name
	if len(want.Permissions) > 0 {
		rec.Permissions = want.Permissions
	}
	if len(want.WebhookSecrets) > 0 {
		rec.WebhookSecrets = want.WebhookSecrets
	}
	return rec
}

// decoder saves a decoder that is new or was not changed over REST since the last inventory.
// Keys that the document maps anew are added in any case; one that REST has deleted or given
// another type since stays as REST left it.
func (a *accountApply) decoder(ctx context.Context, want document.Decoder) error {
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
	change := func(stored *iot.Decoder) error {
		sensors := joined(stored.Sensors, target.Sensors, oldDecoder.Sensors)
		if declared != nil && sameButSensors(*stored, oldDecoder) {
			*stored = target
		}
		stored.Sensors = sensors
		return nil
	}
	nextDecoder := stored
	if err := change(&nextDecoder); err != nil {
		return err
	}
	if err := a.keepDecoder(ctx, nextDecoder, target); err != nil {
		return err
	}
	return a.put(label, true, reflect.DeepEqual(nextDecoder, stored), func() error {
		_, err := a.Devices.ChangeDecoder(ctx, a.id, want.ID, change)
		return err
	})
}

// keepDecoder notes the fields of a decoder that stay as REST has set them, and the keys
// that stay deleted or mapped to another type.
func (a *accountApply) keepDecoder(ctx context.Context, nextDecoder, target iot.Decoder) error {
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
		if err := a.keep(ctx, d, target.ID, "Decoder"); err != nil {
			return err
		}
	}
	return nil
}

// rule saves a rule that is new or was not changed over REST since the last inventory, unless
// rules are reset. One that REST deleted stays deleted while the document has the same values
// for it.
func (a *accountApply) rule(ctx context.Context, want document.Rule) error {
	target, err := ruleOf(want)
	if err != nil {
		return err
	}
	var declared *rule.Rule // by the last inventory
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
		return a.keepUnopened(a.path+"rules."+want.ID, err)
	}
	if keep(stored) {
		return a.keepRule(ctx, stored, target)
	}
	return a.put(a.path+"rule "+want.ID, stored != nil, false, func() error { return a.Rules.Declare(ctx, a.id, target, keep) })
}

// keepRule notes the fields of a rule that stay as REST has set them; stored is nil for a
// rule that stays deleted.
func (a *accountApply) keepRule(ctx context.Context, stored *rule.Rule, target rule.Rule) error {
	path := "rules." + target.ID
	if stored == nil {
		return a.keep(ctx, document.Drift{Path: path, Deleted: true, Reset: "rules"}, target.ID, "Rule")
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
		if err := a.keep(ctx, d, target.ID, "Rule"); err != nil {
			return err
		}
	}
	return nil
}

// relay saves a relay. REST may change its action and its filter: an existing relay
// keeps them, unless relays are reset.
func (a *accountApply) relay(ctx context.Context, want inbound.Relay) error {
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
		return a.keepUnopened(a.path+"relays."+want.ID, err)
	}
	exists := err == nil
	if exists && !a.resets("relays") {
		if err := a.keepRelay(ctx, stored, want); err != nil {
			return err
		}
	}
	if exists && reflect.DeepEqual(merge(stored), stored) {
		return nil
	}
	want.UpdatedAt = a.Now().UTC()
	return a.put(a.path+want.String(), exists, false, func() error { return a.Relays.Declare(ctx, want, merge) })
}

// keepRelay notes the fields of a relay that stay as they are stored.
func (a *accountApply) keepRelay(ctx context.Context, stored, want inbound.Relay) error {
	fields := func(r inbound.Relay) document.NumberRelay {
		return document.NumberRelay{Action: r.Action.Name, Parameters: slices.Concat(r.Action.Parameters), Filter: r.Filter}
	}
	for _, d := range differing("relays."+want.ID, fields(stored), fields(want)) {
		d.ChangedAt, d.Reset = stored.ChangedAt, "relays"
		if err := a.keep(ctx, d, want.ID, "Relay"); err != nil {
			return err
		}
	}
	return nil
}

func sameButSensors(a, b iot.Decoder) bool {
	a.Sensors, b.Sensors = nil, nil
	return reflect.DeepEqual(a, b)
}

// joined maps the keys of a and of b, whose types win, except that what was
// declared before stands as a has it.
func joined(a, b, oldMappings []iot.Mapping) []iot.Mapping {
	mappings := slices.Clone(a)
	for _, m := range b {
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
