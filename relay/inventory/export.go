package inventory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/rule"
	"github.com/penstock/penstock/relay/sim"
)

// Document returns what the document of a name declares, with every secret masked.
// Without a name it returns the only document there is, and relay.KindInvalid if there
// are several; relay.KindNotFound if there is none of the name.
//
// With present set, records that live on through REST and traffic are as they are
// now, and decoders and rules that REST created in the document's accounts are there
// too. Applied, such a document changes no record.
func (s *Service) Document(ctx context.Context, name string, present bool) (document.Document, error) {
	st, err := s.standing(ctx)
	if err != nil {
		return document.Document{}, err
	}
	names := st.set.Names()
	switch {
	case name == "" && len(names) > 1:
		return document.Document{}, relay.Invalid("document", "want one of "+strings.Join(names, ", "))
	case name == "" && len(names) == 1:
		name = names[0]
	case name != "" && !slices.Contains(names, name):
		return document.Document{}, relay.Errorf(relay.KindNotFound, "inventory: no document %s", name)
	}
	if err := s.load(ctx, &st, SIMSelection{Documents: []string{name}}); err != nil {
		return document.Document{}, err
	}
	part := st.set.Part(name)
	if present {
		if err := s.present(ctx, st.set, &part); err != nil {
			return document.Document{}, fmt.Errorf("inventory: export: %w", err)
		}
	}
	return document.Mask(part), nil
}

// Owner returns the name of the document that declares a record other than a SIM, which
// is named as document.Thing does; empty if none does.
func (s *Service) Owner(ctx context.Context, thing string) (string, error) {
	st, err := s.standing(ctx)
	if err != nil {
		return "", err
	}
	return owners(st.set)[thing], nil
}

// owners returns the names of the documents that declare records, by record.
func owners(set document.Set) map[string]string {
	result := make(map[string]string)
	for _, part := range set.Parts() {
		for _, t := range document.Things(part) {
			result[t.String()] = part.Owner()
		}
	}
	return result
}

// present puts what is stored in the place of what was declared.
func (s *Service) present(ctx context.Context, set document.Set, part *document.Document) error {
	owners, accounts := owners(set), set.Owners()
	for i := range part.Accounts {
		a := &part.Accounts[i]
		rec, err := s.Accounts.AccountByName(ctx, a.Name)
		if err != nil {
			return err
		}
		isOwn := accounts.Of(*a) == part.Owner()
		if isOwn {
			if err := s.presentSettings(ctx, rec, a); err != nil {
				return err
			}
		}
		fn := func(kind, id string) bool {
			owner := owners[document.Thing{Kind: kind, Account: a.Name, Name: id}.String()]
			return owner == part.Owner() || isOwn && owner == ""
		}
		p := presenter{s, rec.ID, fn}
		for _, step := range []func(context.Context, *document.Account) error{p.relays, p.sims, p.decoders, p.rules} {
			if err := step(ctx, a); err != nil {
				return fmt.Errorf("account %s: %w", a.Name, err)
			}
		}
	}
	return nil
}

func (s *Service) presentSettings(ctx context.Context, rec account.Account, a *document.Account) error {
	balance, err := s.Credit.Balance(ctx, rec.ID)
	if err != nil {
		return err
	}
	a.Credit, a.CallbackURL = &balance, rec.CallbackURL
	return nil
}

// presenter puts the records of an account in the place of what a document declares.
type presenter struct {
	*Service
	acct relay.AccountID
	fn   func(kind, id string) bool // whether the document shows a decoder or rule
}

func (p presenter) relays(ctx context.Context, a *document.Account) error {
	for i := range a.Relays.Geo {
		r := &a.Relays.Geo[i]
		if err := p.relay(ctx, inbound.Geographic, r.ID, &r.Action, &r.Parameters, &r.Filter); err != nil {
			return err
		}
	}
	for i := range a.Relays.VMN {
		r := &a.Relays.VMN[i]
		if err := p.relay(ctx, inbound.VirtualNumber, r.ID, &r.Action, &r.Parameters, &r.Filter); err != nil {
			return err
		}
	}
	return nil
}

// relay reads what REST changes of a relay.
func (p presenter) relay(ctx context.Context, k inbound.Kind, id string, action *string, parameters *[]string, filter *string) error {
	stored, err := p.Relays.Get(ctx, p.acct, k, id)
	if err != nil {
		return ignoreMissing(err)
	}
	*action, *parameters, *filter = stored.Action.Name, stored.Action.Parameters, stored.Filter
	return nil
}

func (p presenter) sims(ctx context.Context, a *document.Account) error {
	for chunk := range slices.Chunk(a.SIMs, simBatch) {
		iccids := make([]sim.ICCID, len(chunk))
		for i, one := range chunk {
			iccids[i] = sim.ICCID(one.ICCID)
		}
		stored, err := p.SIMs.GetMany(ctx, p.acct, iccids)
		if err != nil {
			return err
		}
		for i := range chunk {
			if have, ok := stored[iccids[i]]; ok {
				chunk[i].CurrentState, chunk[i].Service4G, chunk[i].Service5G = string(have.State), have.Service4G, have.Service5G
			}
		}
	}
	return nil
}

// decoders leaves out decoders that are gone, and adds those that REST created.
func (p presenter) decoders(ctx context.Context, a *document.Account) error {
	stored, err := p.Devices.Decoders(ctx, p.acct)
	a.Decoders = nil
	for _, d := range stored {
		if p.fn("decoder", d.ID) {
			a.Decoders = append(a.Decoders, declaredDecoder(d))
		}
	}
	return err
}

// rules leaves out rules that are gone, and adds those that REST created.
func (p presenter) rules(ctx context.Context, a *document.Account) error {
	stored, err := p.Rules.Rules(ctx, p.acct)
	a.Rules = nil
	for _, r := range stored {
		if !p.fn("rule", r.ID) {
			continue
		}
		if r.Unopened {
			return fmt.Errorf("rule %s: %w", r.ID, relay.ErrUnopened)
		}
		d, err := declaredRule(r)
		if err != nil {
			return err
		}
		a.Rules = append(a.Rules, d)
	}
	return err
}

// declaredDecoder is the document's form of a decoder.
func declaredDecoder(d iot.Decoder) document.Decoder {
	decoder := document.Decoder{
		ID: d.ID, Name: d.Name, Description: d.Description, Type: string(d.Type),
		Codec: d.Codec, Source: d.Source, UseRawPayload: d.UseRawPayload,
		MACVersion: d.MACVersion, Revision: d.Revision, ClassB: d.ClassB, ClassC: d.ClassC,
	}
	for _, m := range d.Sensors {
		decoder.Sensors = append(decoder.Sensors, document.Mapping(m))
	}
	return decoder
}

// declaredRule is the document's form of a rule, whose fields are those of the API.
func declaredRule(r rule.Rule) (d document.Rule, err error) {
	text, err := json.Marshal(rule.DocumentOf(r))
	if err != nil {
		return d, err
	}
	return d, json.Unmarshal(text, &d)
}
