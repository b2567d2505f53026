package inventory

import (
	"reflect"
	"time"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/rule"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sip"
)

func relaysOf(a document.Account) []inbound.Relay {
	var relays []inbound.Relay
	for _, r := range a.Relays.Geo {
		relays = append(relays, inbound.Relay{
			ID: r.ID, Kind: inbound.Geographic, Number: r.Prefix, ICCID: r.ICCID, Filter: r.Filter, Pace: outbox.Pace(r.Pace),
			Action: inbound.Action{Name: r.Action, Parameters: r.Parameters},
		})
	}
	for _, r := range a.Relays.VMN {
		relays = append(relays, inbound.Relay{
			ID: r.ID, Kind: inbound.VirtualNumber, Number: r.Number, Filter: r.Filter, Pace: outbox.Pace(r.Pace),
			Action: inbound.Action{Name: r.Action, Parameters: r.Parameters},
		})
	}
	return relays
}

func locationsOf(a document.Account) []iot.Location {
	locations := make([]iot.Location, len(a.Locations))
	for i, l := range a.Locations {
		locations[i] = iot.Location(l)
	}
	return locations
}

func trunksOf(a document.Account) []sip.Trunk {
	var trunks []sip.Trunk
	for _, t := range a.SIP.Trunks {
		trunks = append(trunks, sip.Trunk(t))
	}
	return trunks
}

func simsOf(a document.Account) []sim.SIM {
	sims := make([]sim.SIM, len(a.SIMs))
	for i, s := range a.SIMs {
		sims[i] = sim.SIM{
			ICCID: sim.ICCID(s.ICCID), IMSI: s.IMSI, MSISDN: s.MSISDN, Service4G: s.Service4G, Service5G: s.Service5G,
			Codes: sim.Codes{PIN: s.PIN, PIN2: s.PIN2, PUK: s.PUK, PUK2: s.PUK2}, State: sim.State(s.CurrentState),
		}
	}
	return sims
}

func tokensOf(id relay.AccountID, a document.Account) []account.Token {
	tokens := make([]account.Token, 0, len(a.Tokens))
	for _, t := range a.Tokens {
		token := account.Token{Hash: t.Hash(), Account: id, Secret: t.Secret, Source: t.Source, Scopes: account.DefaultScopes()}
		if len(t.Scopes) > 0 {
			token.Scopes = nil
			for _, s := range t.Scopes {
				token.Scopes = append(token.Scopes, account.Scope(s))
			}
		}
		tokens = append(tokens, token)
	}
	return tokens
}

func decoderOf(d document.Decoder) iot.Decoder {
	decoder := iot.Decoder{
		ID: d.ID, Name: d.Name, Description: d.Description, Type: iot.DeviceType(d.Type),
		Codec: d.Codec, Source: d.Source, UseRawPayload: d.UseRawPayload,
		MACVersion: d.MACVersion, Revision: d.Revision, ClassB: d.ClassB, ClassC: d.ClassC,
	}
	for _, m := range d.Sensors {
		decoder.Sensors = append(decoder.Sensors, iot.Mapping(m))
	}
	return decoder
}

// ruleOf returns a declared rule. It returns an Invalid error for an invalid repeat.
func ruleOf(d document.Rule) (rule.Rule, error) {
	r := rule.Rule{
		ID: d.ID, Name: d.Name, Enabled: d.Enabled == nil || *d.Enabled, On: rule.Trigger(d.On), Devices: rule.Devices(d.Devices),
		When: d.When, Clear: d.Clear, For: time.Duration(d.For), SilentFor: time.Duration(d.SilentFor),
		Batch: rule.Batch{Count: d.Batch.Count, Every: time.Duration(d.Batch.Every)}, Ordered: d.Ordered,
	}
	for _, a := range d.Actions {
		r.Actions = append(r.Actions, rule.Action(a))
	}
	var err error
	r.Repeat, err = rule.ParseRepeat(d.Repeat)
	return r, err
}

// CheckRule returns the mistakes of a declared rule by field.
func CheckRule(d document.Rule) map[string][]string {
	r, err := ruleOf(d)
	if err == nil {
		_, err = rule.Compile(&r)
	}
	if err != nil && relay.KindOf(err) != relay.KindInvalid {
		return map[string][]string{"": {err.Error()}}
	}
	return relay.FieldsOf(err)
}

// sameRule reports whether two rules are equal except for their times.
func sameRule(a, b rule.Rule) bool {
	return reflect.DeepEqual(rule.DocumentOf(a), rule.DocumentOf(b))
}
