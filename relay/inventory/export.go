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

// View has the options of Document.
type View struct {
	// Present returns the present values of fields that the REST API and traffic change, and the
	// decoders, rules, relays and locations that the REST API created in the document's accounts. An
	// apply of such a document at the same gateway changes no record.
	Present bool
	// Secrets returns secrets instead of masks, so that another gateway can apply the document.
	// Tokens and passwords are hashes. With Present, the document also has the tokens that the
	// admin API created.
	Secrets bool
}

// Document returns the document with a name. An empty name selects the only document; if there are
// several, Document returns an Invalid error. It returns a NotFound error for an unknown name.
func (s *Service) Document(ctx context.Context, name string, v View) (document.Document, error) {
	stored, err := s.loadSet(ctx)
	if err != nil {
		return document.Document{}, err
	}
	names := stored.set.Names()
	switch {
	case name == "" && len(names) > 1:
		return document.Document{}, relay.Invalid("document", "must be one of "+strings.Join(names, ", "))
	case name == "" && len(names) == 1:
		name = names[0]
	case name != "" && !slices.Contains(names, name):
		return document.Document{}, relay.Errorf(relay.KindNotFound, "inventory: no document %s", name)
	}
	if err := s.loadSIMs(ctx, &stored, SIMSelection{Documents: []string{name}}); err != nil {
		return document.Document{}, err
	}
	part := stored.set.Part(name)
	if v.Present {
		if err := s.replaceWithStored(ctx, stored.set, &part, v.Secrets); err != nil {
			return document.Document{}, fmt.Errorf("inventory: export: %w", err)
		}
	}
	if v.Secrets {
		return document.Seal(part), nil
	}
	return document.Mask(part), nil
}

// Owner returns the name of the document that declares a record other than a SIM; empty if there is
// none. recordName is the name of the record, see document.RecordName.
func (s *Service) Owner(ctx context.Context, recordName string) (string, error) {
	stored, err := s.loadSet(ctx)
	if err != nil {
		return "", err
	}
	return owners(stored.set)[recordName], nil
}

// owners returns the names of the declaring documents by the name of the record.
func owners(set document.Set) map[string]string {
	owners := make(map[string]string)
	for _, part := range set.Parts() {
		for _, t := range document.RecordNames(part) {
			owners[t.String()] = part.Owner()
		}
	}
	return owners
}

// replaceWithStored replaces the declared records of a document with the stored records.
func (s *Service) replaceWithStored(ctx context.Context, set document.Set, part *document.Document, secrets bool) error {
	owners, accounts := owners(set), set.Owners()
	for i := range part.Accounts {
		a := &part.Accounts[i]
		rec, err := s.Accounts.AccountByName(ctx, a.Name)
		if err != nil {
			return err
		}
		isOwn := accounts.OwnerOf(*a) == part.Owner()
		p := presenter{Service: s, acct: rec.ID, secrets: secrets}
		p.shows = func(kind, id string) bool {
			owner := owners[document.RecordName{Kind: kind, Account: a.Name, Name: id}.String()]
			return owner == part.Owner() || isOwn && owner == ""
		}
		steps := []func(context.Context, *document.Account) error{p.setRelays, p.setLocations, p.setSIMs, p.setDecoders, p.setRules}
		if isOwn {
			steps = append(steps, func(ctx context.Context, a *document.Account) error { return p.setSettings(ctx, rec, a) })
		}
		for _, step := range steps {
			if err := step(ctx, a); err != nil {
				return fmt.Errorf("account %s: %w", a.Name, err)
			}
		}
	}
	return nil
}

// presenter replaces the declared records of an account with the stored records.
type presenter struct {
	*Service
	acct    relay.AccountID
	secrets bool
	shows   func(kind, id string) bool // whether the document has a record; kind is RecordName.Kind
}

// setSettings sets the settings of an account. Without secrets, it omits webhook secrets that the API
// has set, because an apply cannot replace their masks but keeps omitted secrets.
func (p presenter) setSettings(ctx context.Context, rec account.Account, a *document.Account) error {
	balance, err := p.Credit.Balance(ctx, rec.ID)
	if err != nil {
		return err
	}
	a.Credit, a.CallbackURL, a.Permissions = &balance, rec.CallbackURL, rec.Permissions
	switch {
	case p.secrets:
		a.WebhookSecrets = rec.WebhookSecrets
	case !slices.Equal(a.WebhookSecrets, rec.WebhookSecrets):
		a.WebhookSecrets = nil
	}
	if !p.secrets {
		return nil
	}
	stored, err := p.Tokens(ctx, rec.ID)
	for _, t := range stored {
		if t.Document != "" || t.Undecryptable {
			continue
		}
		token := document.Token{Token: document.SealedHash(t.Hash), Source: t.Source, Secret: t.Secret}
		for _, scope := range t.Scopes {
			token.Scopes = append(token.Scopes, string(scope))
		}
		a.Tokens = append(a.Tokens, token)
	}
	return err
}

// setRelays omits deleted relays and adds relays that the REST API created.
func (p presenter) setRelays(ctx context.Context, a *document.Account) error {
	a.Relays = document.Relays{}
	for _, kind := range []inbound.Kind{inbound.Geographic, inbound.VirtualNumber} {
		stored, err := p.Relays.List(ctx, p.acct, kind)
		if err != nil {
			return err
		}
		for _, r := range stored {
			switch {
			case r.Undecryptable:
				return fmt.Errorf("relay %s: %w", r.ID, relay.ErrUndecryptable)
			case kind == inbound.Geographic && p.shows("geo relay", r.ID):
				a.Relays.Geo = append(a.Relays.Geo, document.GeoRelay{
					ID: r.ID, Prefix: r.Number, ICCID: r.ICCID, Filter: r.Filter, Pace: document.Pace(r.Pace),
					Action: r.Action.Name, Parameters: r.Action.Parameters,
				})
			case kind == inbound.VirtualNumber && p.shows("vmn relay", r.ID):
				a.Relays.VMN = append(a.Relays.VMN, document.NumberRelay{
					ID: r.ID, Number: r.Number, Filter: r.Filter, Pace: document.Pace(r.Pace),
					Action: r.Action.Name, Parameters: r.Action.Parameters,
				})
			}
		}
	}
	return nil
}

// setLocations omits deleted locations and adds locations that the REST API created.
func (p presenter) setLocations(ctx context.Context, a *document.Account) error {
	stored, err := p.Devices.Locations(ctx, p.acct)
	a.Locations = nil
	for _, l := range stored {
		if p.shows("location", l.ID) {
			a.Locations = append(a.Locations, document.Location(l))
		}
	}
	return err
}

func (p presenter) setSIMs(ctx context.Context, a *document.Account) error {
	for chunk := range slices.Chunk(a.SIMs, simBatch) {
		iccids := make([]sim.ICCID, len(chunk))
		for i := range chunk {
			iccids[i] = sim.ICCID(chunk[i].ICCID)
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

// setDecoders omits deleted decoders and adds decoders that the REST API created.
func (p presenter) setDecoders(ctx context.Context, a *document.Account) error {
	stored, err := p.Devices.Decoders(ctx, p.acct)
	a.Decoders = nil
	for _, d := range stored {
		if p.shows("decoder", d.ID) {
			a.Decoders = append(a.Decoders, declaredDecoder(d))
		}
	}
	return err
}

// setRules omits deleted rules and adds rules that the REST API created.
func (p presenter) setRules(ctx context.Context, a *document.Account) error {
	stored, err := p.Rules.Rules(ctx, p.acct)
	a.Rules = nil
	for _, r := range stored {
		if !p.shows("rule", r.ID) {
			continue
		}
		if r.Undecryptable {
			return fmt.Errorf("rule %s: %w", r.ID, relay.ErrUndecryptable)
		}
		d, err := declaredRule(r)
		if err != nil {
			return err
		}
		a.Rules = append(a.Rules, d)
	}
	return err
}

// declaredDecoder returns the declared form of a decoder.
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

// declaredRule returns the declared form of a rule, which has the fields of the API.
func declaredRule(r rule.Rule) (d document.Rule, err error) {
	text, err := json.Marshal(rule.DocumentOf(r))
	if err != nil {
		return d, err
	}
	return d, json.Unmarshal(text, &d)
}
