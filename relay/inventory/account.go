package inventory

import (
	"cmp"
	"context"
	"reflect"
	"slices"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sip"
)

// account applies one account and notes the id it has. In a dry run a new account
// has none: no record is found with it.
func (a *apply) account(ctx context.Context, want *document.Account) error {
	before := a.before(*want)
	id, err := a.settings(ctx, want, before)
	if err != nil {
		return err
	}
	at := "account " + want.Name + ": "
	for _, l := range want.Locations {
		if err := a.location(ctx, id, at, l, before); err != nil {
			return err
		}
	}
	for _, d := range want.Decoders {
		if err := a.decoder(ctx, id, at, d, before); err != nil {
			return err
		}
	}
	for _, r := range want.Rules {
		if err := a.rule(ctx, id, at, r, before); err != nil {
			return err
		}
	}
	for _, r := range relaysOf(*want) {
		r.Account = id
		if err := a.relay(ctx, at, r); err != nil {
			return err
		}
	}
	for _, l := range want.Ledgers {
		if err := a.ledger(ctx, id, at, l, before); err != nil {
			return err
		}
	}
	if err := a.sims(ctx, id, at, simsOf(*want)); err != nil {
		return err
	}
	return a.tokens(ctx, id, at, *want, before)
}

// settings saves the account itself and its credit.
func (a *apply) settings(ctx context.Context, want *document.Account, before document.Account) (id account.ID, err error) {
	stored, err := a.Accounts.AccountByName(ctx, want.Name)
	exists := err == nil
	if err != nil && relay.KindOf(err) != relay.KindNotFound {
		return 0, err
	}
	rec := a.record(stored, *want, before)
	id = stored.ID
	err = a.put("account "+want.Name, exists, reflect.DeepEqual(rec, stored), func() (err error) {
		id, err = a.Accounts.PutAccount(ctx, rec)
		return err
	})
	if err != nil {
		return 0, err
	}
	want.ID = int64(id)
	if id != 0 {
		a.done.Accounts = append(a.done.Accounts, AppliedAccount{ID: id, Name: want.Name})
	}
	return id, a.credit(ctx, id, exists, *want)
}

// credit gives a new account what it begins with. An existing one keeps what it
// has, unless credit is reset.
func (a *apply) credit(ctx context.Context, id account.ID, exists bool, want document.Account) error {
	var credits int64
	if want.Credit != nil {
		credits = *want.Credit
	}
	if !a.mode.DryRun {
		if err := a.Credit.Open(ctx, id, credits, a.Now()); err != nil {
			return err
		}
	}
	if want.Credit == nil || !exists || !slices.Contains(a.mode.Reset, "credit") {
		return nil
	}
	balance, err := a.Credit.Balance(ctx, id)
	if err != nil {
		return err
	}
	return a.put("account "+want.Name+": credit", true, balance == credits, func() error { return a.Credit.Set(ctx, id, credits, a.Now()) })
}

func (a *apply) location(ctx context.Context, id account.ID, at string, want document.Location, before document.Account) error {
	have := slices.IndexFunc(before.Locations, func(l document.Location) bool { return l.ID == want.ID })
	same := have >= 0 && before.Locations[have] == want
	return a.put(at+"location "+want.ID, have >= 0, same, func() error { return a.Devices.PutLocation(ctx, id, iot.Location(want)) })
}

func (a *apply) ledger(ctx context.Context, id account.ID, at string, want document.Ledger, before document.Account) error {
	have := slices.IndexFunc(before.Ledgers, func(l document.Ledger) bool { return l.ID == want.ID })
	same := have >= 0 && before.Ledgers[have] == want
	return a.put(at+"ledger "+want.ID, have >= 0, same, func() error { return a.Ledgers.Put(ctx, id, ledgerOf(want)) })
}

// simBatch is how many SIMs are compared at one time.
const simBatch = 2000

func (a *apply) sims(ctx context.Context, id account.ID, at string, all []sim.SIM) error {
	reset := slices.Contains(a.mode.Reset, "sims")
	for some := range slices.Chunk(all, simBatch) {
		iccids := make([]sim.ICCID, len(some))
		for i, s := range some {
			iccids[i] = s.ICCID
		}
		have, err := a.SIMs.GetMany(ctx, id, iccids)
		if err != nil {
			return err
		}
		for _, want := range some {
			was, exists := have[want.ICCID]
			if exists && reflect.DeepEqual(was, sim.Declared(was, want, reset)) {
				continue
			}
			if err := a.put(at+"SIM "+string(want.ICCID), exists, false, func() error { return nil }); err != nil {
				return err
			}
		}
	}
	if a.mode.DryRun {
		return nil
	}
	return a.SIMs.Declare(ctx, id, all, reset)
}

func (a *apply) tokens(ctx context.Context, id account.ID, at string, want, before document.Account) error {
	declared := tokensOf(id, before)
	tokens := withSecrets(tokensOf(id, want), declared)
	for i, t := range tokens {
		have := slices.IndexFunc(declared, func(d account.Token) bool { return d.Hash == t.Hash })
		same := have >= 0 && reflect.DeepEqual(declared[have], t)
		if err := a.put(at+"token "+want.Tokens[i].Label(), have >= 0, same, func() error { return nil }); err != nil {
			return err
		}
	}
	if a.mode.DryRun {
		return nil
	}
	return a.Accounts.PutTokens(ctx, tokens)
}

// trunks saves the trunks of the accounts that the document names: those that
// other documents or earlier inventories declared stay.
func (a *apply) trunks(ctx context.Context, whole document.Document) error {
	for _, want := range a.fresh.Accounts {
		before := a.before(want).SIP.Trunks
		for _, t := range want.SIP.Trunks {
			exists := slices.ContainsFunc(before, func(b document.Trunk) bool { return b.Label() == t.Label() })
			if err := a.put("account "+want.Name+": trunk "+t.Label(), exists, true, func() error { return nil }); err != nil {
				return err
			}
		}
		if a.mode.DryRun {
			continue
		}
		if err := a.Trunks.PutTrunks(ctx, account.ID(want.ID), trunksOf(whole, want.Name)); err != nil {
			return err
		}
	}
	return nil
}

// trunksOf is the trunks that a document declares for an account.
func trunksOf(d document.Document, name string) []sip.Trunk {
	var list []sip.Trunk
	for _, acct := range d.Accounts {
		if acct.Name != name {
			continue
		}
		for _, t := range acct.SIP.Trunks {
			list = append(list, sip.Trunk(t))
		}
	}
	return list
}

// before returns what an earlier inventory declared of an account.
func (a *apply) before(want document.Account) document.Account {
	for _, old := range a.old.Accounts {
		if want.ID != 0 && old.ID == want.ID || want.ID == 0 && old.Name == want.Name {
			return old
		}
	}
	return document.Account{}
}

// record is the account as it shall be saved: what only an inventory sets is
// replaced where it is given; the callback, which REST can change, only while
// it is still what the last inventory said.
func (a *apply) record(rec account.Account, want, before document.Account) account.Account {
	if rec.CallbackURL == before.CallbackURL {
		rec.CallbackURL = cmp.Or(want.CallbackURL, rec.CallbackURL)
	}
	rec.ID, rec.Name = cmp.Or(account.ID(want.ID), rec.ID), want.Name
	if len(want.Permissions) > 0 {
		rec.Permissions = want.Permissions
	}
	if len(want.WebhookSecrets) > 0 {
		rec.WebhookSecrets = want.WebhookSecrets
	}
	return rec
}

// decoder saves a decoder that is new or that nobody changed over REST since
// the last inventory. Keys that the document maps anew are added in any case;
// one that REST has deleted or given another type since stays as REST left it.
func (a *apply) decoder(ctx context.Context, id account.ID, at string, want document.Decoder, before document.Account) error {
	target := decoderOf(want)
	what := at + "decoder " + want.ID
	stored, err := a.Devices.Decoder(ctx, id, want.ID)
	switch {
	case relay.KindOf(err) == relay.KindNotFound:
		return a.put(what, false, false, func() error { return a.Devices.CreateDecoder(ctx, id, target) })
	case err != nil:
		return err
	}
	declared := slices.IndexFunc(before.Decoders, func(d document.Decoder) bool { return d.ID == want.ID })
	change := func(stored *iot.Decoder) error {
		var was iot.Decoder
		if declared >= 0 {
			was = decoderOf(before.Decoders[declared])
		}
		sensors := joined(stored.Sensors, target.Sensors, was.Sensors)
		if declared >= 0 && sameButSensors(*stored, was) {
			*stored = target
		}
		stored.Sensors = sensors
		return nil
	}
	next := stored
	if err := change(&next); err != nil {
		return err
	}
	return a.put(what, true, reflect.DeepEqual(next, stored), func() error {
		_, err := a.Devices.ChangeDecoder(ctx, id, want.ID, change)
		return err
	})
}

// rule saves a rule that is new or that nobody changed over REST since the last
// inventory, unless rules are reset. One that REST deleted stays deleted while the
// document says of it what it said.
func (a *apply) rule(ctx context.Context, id account.ID, at string, want document.Rule, before document.Account) error {
	target, err := ruleOf(want)
	if err != nil {
		return err
	}
	stored, err := a.Rules.Rule(ctx, id, want.ID)
	if err != nil && relay.KindOf(err) != relay.KindNotFound {
		return err
	}
	missing := err != nil
	if !missing && sameRule(stored, target) {
		return nil
	}
	was := slices.IndexFunc(before.Rules, func(d document.Rule) bool { return d.ID == want.ID })
	if was >= 0 && !slices.Contains(a.mode.Reset, "rules") {
		declared, err := ruleOf(before.Rules[was])
		if err != nil {
			return err
		}
		if missing && sameRule(declared, target) || !missing && !sameRule(stored, declared) {
			return nil
		}
	}
	return a.put(at+"rule "+want.ID, !missing, false, func() error { return a.Rules.Declare(ctx, id, target) })
}

// relay saves a relay. Its action and its filter live on through REST: an
// existing one keeps them, unless relays are reset.
func (a *apply) relay(ctx context.Context, at string, want inbound.Relay) error {
	stored, err := a.Relays.Get(ctx, want.Account, want.Kind, want.ID)
	if err != nil && relay.KindOf(err) != relay.KindNotFound {
		return err
	}
	exists := err == nil
	if exists && !slices.Contains(a.mode.Reset, "relays") {
		want.Action, want.Filter = stored.Action, stored.Filter
	}
	want.UpdatedAt = stored.UpdatedAt
	if exists && reflect.DeepEqual(want, stored) {
		return nil
	}
	want.UpdatedAt = a.Now().UTC()
	return a.put(at+want.String(), exists, false, func() error { return a.Relays.Put(ctx, want) })
}

func sameButSensors(a, b iot.Decoder) bool {
	a.Sensors, b.Sensors = nil, nil
	return reflect.DeepEqual(a, b)
}

// joined maps the keys of a and of b, whose types win, except that what was
// declared before stands as a has it.
func joined(a, b, before []iot.Mapping) []iot.Mapping {
	out := slices.Clone(a)
	for _, m := range b {
		if slices.Contains(before, m) {
			continue
		}
		at := slices.IndexFunc(out, func(have iot.Mapping) bool { return have.Key == m.Key })
		if at < 0 {
			out = append(out, m)
		} else {
			out[at] = m
		}
	}
	return out
}
