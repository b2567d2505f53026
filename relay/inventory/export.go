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
	if err := s.load(ctx, &st, account.WhichSIMs{Documents: []string{name}}); err != nil {
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
	for _, part := range st.set.Parts() {
		if slices.ContainsFunc(document.Things(part), func(t document.Thing) bool { return t.String() == thing }) {
			return part.Owner(), nil
		}
	}
	return "", nil
}

// present puts what is stored in the place of what was declared.
func (s *Service) present(ctx context.Context, set document.Set, part *document.Document) error {
	declared := make(map[string]bool)
	for _, t := range document.Things(set.Whole()) {
		declared[t.String()] = true
	}
	owners := set.Owners()
	for i := range part.Accounts {
		a := &part.Accounts[i]
		rec, err := s.Accounts.AccountByName(ctx, a.Name)
		if err != nil {
			return err
		}
		own := owners.Of(*a) == part.Owner()
		if own {
			if err := s.presentSettings(ctx, rec, a); err != nil {
				return err
			}
		}
		undeclared := func(kind, id string) bool {
			return own && !declared[document.Thing{Kind: kind, Account: a.Name, Name: id}.String()]
		}
		if err := s.presentRecords(ctx, rec.ID, a, undeclared); err != nil {
			return fmt.Errorf("account %s: %w", a.Name, err)
		}
	}
	return nil
}

func (s *Service) presentRecords(ctx context.Context, acct account.ID, a *document.Account, undeclared func(kind, id string) bool) error {
	if err := s.presentRelays(ctx, acct, a); err != nil {
		return err
	}
	if err := s.presentSIMs(ctx, acct, a); err != nil {
		return err
	}
	if err := s.presentDecoders(ctx, acct, a, undeclared); err != nil {
		return err
	}
	return s.presentRules(ctx, acct, a, undeclared)
}

func (s *Service) presentSettings(ctx context.Context, rec account.Account, a *document.Account) error {
	balance, err := s.Credit.Balance(ctx, rec.ID)
	if err != nil {
		return err
	}
	a.Credit, a.CallbackURL = &balance, rec.CallbackURL
	return nil
}

func (s *Service) presentRelays(ctx context.Context, acct account.ID, a *document.Account) error {
	for i := range a.Relays.Geo {
		r := &a.Relays.Geo[i]
		if err := s.presentRelay(ctx, acct, inbound.Geographic, r.ID, &r.Action, &r.Parameters, &r.Filter); err != nil {
			return err
		}
	}
	for i := range a.Relays.VMN {
		r := &a.Relays.VMN[i]
		if err := s.presentRelay(ctx, acct, inbound.VirtualNumber, r.ID, &r.Action, &r.Parameters, &r.Filter); err != nil {
			return err
		}
	}
	return nil
}

// presentRelay reads what REST changes of a relay.
func (s *Service) presentRelay(ctx context.Context, acct account.ID, k inbound.Kind, id string, action *string, parameters *[]string, filter *string) error {
	stored, err := s.Relays.Get(ctx, acct, k, id)
	if err != nil {
		return ignoreMissing(err)
	}
	*action, *parameters, *filter = stored.Action.Name, stored.Action.Parameters, stored.Filter
	return nil
}

func (s *Service) presentSIMs(ctx context.Context, acct account.ID, a *document.Account) error {
	for some := range slices.Chunk(a.SIMs, simBatch) {
		iccids := make([]sim.ICCID, len(some))
		for i, one := range some {
			iccids[i] = sim.ICCID(one.ICCID)
		}
		stored, err := s.SIMs.GetMany(ctx, acct, iccids)
		if err != nil {
			return err
		}
		for i := range some {
			if have, ok := stored[iccids[i]]; ok {
				some[i].CurrentState, some[i].Service4G, some[i].Service5G = string(have.State), have.Service4G, have.Service5G
			}
		}
	}
	return nil
}

// presentDecoders leaves out decoders that are gone, and adds those that REST created.
func (s *Service) presentDecoders(ctx context.Context, acct account.ID, a *document.Account, undeclared func(kind, id string) bool) error {
	stored, err := s.Devices.Decoders(ctx, acct)
	if err != nil {
		return err
	}
	was := a.Decoders
	a.Decoders = nil
	for _, d := range stored {
		named := slices.ContainsFunc(was, func(w document.Decoder) bool { return w.ID == d.ID })
		if named || undeclared("decoder", d.ID) {
			a.Decoders = append(a.Decoders, declaredDecoder(d))
		}
	}
	return nil
}

// presentRules leaves out rules that are gone, and adds those that REST created.
func (s *Service) presentRules(ctx context.Context, acct account.ID, a *document.Account, undeclared func(kind, id string) bool) error {
	stored, err := s.Rules.Rules(ctx, acct)
	if err != nil {
		return err
	}
	was := a.Rules
	a.Rules = nil
	for _, r := range stored {
		named := slices.ContainsFunc(was, func(w document.Rule) bool { return w.ID == r.ID })
		if !named && !undeclared("rule", r.ID) {
			continue
		}
		d, err := declaredRule(r)
		if err != nil {
			return err
		}
		a.Rules = append(a.Rules, d)
	}
	return nil
}

// declaredDecoder is the document's form of a decoder.
func declaredDecoder(d iot.Decoder) document.Decoder {
	out := document.Decoder{
		ID: d.ID, Name: d.Name, Description: d.Description, Type: string(d.Type),
		Codec: d.Codec, Source: d.Source, UseRawPayload: d.UseRawPayload,
		MACVersion: d.MACVersion, Revision: d.Revision, ClassB: d.ClassB, ClassC: d.ClassC,
	}
	for _, m := range d.Sensors {
		out.Sensors = append(out.Sensors, document.Mapping(m))
	}
	return out
}

// declaredRule is the document's form of a rule, whose fields are those of the API.
func declaredRule(r rule.Rule) (d document.Rule, err error) {
	text, err := json.Marshal(rule.DocumentOf(r))
	if err != nil {
		return d, err
	}
	return d, json.Unmarshal(text, &d)
}
