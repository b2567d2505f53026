package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/lookup"
	"github.com/penstock/penstock/relay/sip"
)

// apply is one document on its way into the records. Every step may be repeated:
// an apply that broke off is completed by the next.
type apply struct {
	*Service
	mode       Mode
	was        []byte // what stood, as it is kept
	old, fresh document.Document
	done       Applied
}

func (a *apply) run(ctx context.Context) error {
	a.done = Applied{Accounts: []AppliedAccount{}, Removed: []string{}, Kept: []string{}}
	if err := a.identities(ctx); err != nil {
		return err
	}
	for _, t := range a.fresh.SensorTypes {
		if err := a.Devices.PutSensorType(ctx, iot.SensorType(t)); err != nil {
			return err
		}
	}
	for _, n := range a.fresh.Networks {
		if err := a.Networks.PutNetwork(ctx, lookup.Network(n)); err != nil {
			return err
		}
	}
	if err := a.prune(ctx); err != nil {
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
	whole := document.Merge(a.old, a.fresh)
	if err := a.trunks(ctx, whole); err != nil {
		return err
	}
	merged, err := document.Encode(document.Seal(whole))
	if err != nil {
		return fmt.Errorf("inventory: encode: %w", err)
	}
	err = a.Accounts.PutInventory(ctx, a.was, merged)
	if relay.KindOf(err) == relay.KindConflict {
		return fmt.Errorf("%w: %w", errRaced, err)
	}
	return err
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

// account applies one account and notes the id it has.
func (a *apply) account(ctx context.Context, want *document.Account) error {
	before := a.before(*want)
	rec, err := a.record(ctx, *want, before)
	if err != nil {
		return err
	}
	id, err := a.Accounts.PutAccount(ctx, rec)
	if err != nil {
		return err
	}
	want.ID = int64(id)
	a.done.Accounts = append(a.done.Accounts, AppliedAccount{ID: id, Name: want.Name})
	if err := a.credit(ctx, id, want.Credit); err != nil {
		return err
	}
	for _, l := range want.Locations {
		if err := a.Devices.PutLocation(ctx, id, iot.Location(l)); err != nil {
			return err
		}
	}
	for _, d := range want.Decoders {
		if err := a.decoder(ctx, id, d, before); err != nil {
			return err
		}
	}
	for _, r := range want.Rules {
		if err := a.rule(ctx, id, r, before); err != nil {
			return err
		}
	}
	for _, r := range relaysOf(*want) {
		r.Account = id
		if err := a.relay(ctx, r); err != nil {
			return err
		}
	}
	for _, l := range want.Ledgers {
		if err := a.Ledgers.Put(ctx, id, ledgerOf(l)); err != nil {
			return err
		}
	}
	if err := a.SIMs.Declare(ctx, id, simsOf(*want), slices.Contains(a.mode.Reset, "sims")); err != nil {
		return err
	}
	return a.Accounts.PutTokens(ctx, withSecrets(tokensOf(id, *want), tokensOf(id, before)))
}

// credit gives a new account what it begins with. An existing one keeps what it
// has, unless credit is reset.
func (a *apply) credit(ctx context.Context, id account.ID, want *int64) error {
	var credits int64
	if want != nil {
		credits = *want
	}
	if err := a.Credit.Open(ctx, id, credits, a.Now()); err != nil {
		return err
	}
	if want == nil || !slices.Contains(a.mode.Reset, "credit") {
		return nil
	}
	return a.Credit.Set(ctx, id, credits, a.Now())
}

// trunks saves the trunks of the accounts that the document names: those that
// earlier inventories declared stay.
func (a *apply) trunks(ctx context.Context, whole document.Document) error {
	for _, done := range a.done.Accounts {
		for _, acct := range whole.Accounts {
			if acct.Name != done.Name {
				continue
			}
			var list []sip.Trunk
			for _, t := range acct.SIP.Trunks {
				list = append(list, sip.Trunk(t))
			}
			if err := a.Trunks.PutTrunks(ctx, done.ID, list); err != nil {
				return err
			}
		}
	}
	return nil
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
func (a *apply) record(ctx context.Context, want, before document.Account) (account.Account, error) {
	rec, err := a.Accounts.AccountByName(ctx, want.Name)
	if err != nil && relay.KindOf(err) != relay.KindNotFound {
		return rec, err
	}
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
	return rec, nil
}

// decoder saves a decoder that is new or that nobody changed over REST since
// the last inventory. Keys that the document maps anew are added in any case;
// one that REST has deleted or given another type since stays as REST left it.
func (a *apply) decoder(ctx context.Context, id account.ID, want document.Decoder, before document.Account) error {
	target := decoderOf(want)
	_, err := a.Devices.Decoder(ctx, id, want.ID)
	switch {
	case relay.KindOf(err) == relay.KindNotFound:
		return a.Devices.CreateDecoder(ctx, id, target)
	case err != nil:
		return err
	}
	at := slices.IndexFunc(before.Decoders, func(d document.Decoder) bool { return d.ID == want.ID })
	_, err = a.Devices.ChangeDecoder(ctx, id, want.ID, func(stored *iot.Decoder) error {
		var declared iot.Decoder
		if at >= 0 {
			declared = decoderOf(before.Decoders[at])
		}
		sensors := joined(stored.Sensors, target.Sensors, declared.Sensors)
		if at >= 0 && sameButSensors(*stored, declared) {
			*stored = target
		}
		stored.Sensors = sensors
		return nil
	})
	return err
}

// rule saves a rule that is new or that nobody changed over REST since the last
// inventory, unless rules are reset. One that REST deleted stays deleted while the
// document says of it what it said.
func (a *apply) rule(ctx context.Context, id account.ID, want document.Rule, before document.Account) error {
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
	at := slices.IndexFunc(before.Rules, func(d document.Rule) bool { return d.ID == want.ID })
	if at >= 0 && !slices.Contains(a.mode.Reset, "rules") {
		declared, err := ruleOf(before.Rules[at])
		if err != nil {
			return err
		}
		if missing && sameRule(declared, target) || !missing && !sameRule(stored, declared) {
			return nil
		}
	}
	return a.Rules.Declare(ctx, id, target)
}

// relay saves a relay. Its action and its filter live on through REST: an
// existing one keeps them, unless relays are reset.
func (a *apply) relay(ctx context.Context, want inbound.Relay) error {
	stored, err := a.Relays.Get(ctx, want.Account, want.Kind, want.ID)
	if err != nil && relay.KindOf(err) != relay.KindNotFound {
		return err
	}
	if err == nil && !slices.Contains(a.mode.Reset, "relays") {
		want.Action, want.Filter = stored.Action, stored.Filter
	}
	want.UpdatedAt = stored.UpdatedAt
	if err == nil && reflect.DeepEqual(want, stored) {
		return nil
	}
	want.UpdatedAt = a.Now().UTC()
	return a.Relays.Put(ctx, want)
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
