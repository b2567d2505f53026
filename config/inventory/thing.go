package inventory

import (
	"fmt"
	"strings"
)

// Thing is a record that a document declares, or an account.
type Thing struct {
	Kind    string // sensor type, decoder, SIM and so on
	Account string // the account's name; empty: the record belongs to none
	Name    string // as people know the record
	Path    string // of the record in its document
	key     string // what tells records of a kind apart
}

// String names the thing: "account acme: decoder d1", "sensor type temperature".
func (t Thing) String() string {
	name := t.Kind + " " + t.Name
	if t.Account != "" {
		return "account " + t.Account + ": " + name
	}
	return name
}

// identity is the same for the same record in two documents.
type identity struct{ kind, account, key string }

func (t Thing) identity() identity { return identity{t.Kind, t.Account, t.key} }

// Things lists the records of a document. Accounts are not among them: an
// account is never removed.
func Things(d Document) []Thing {
	var out []Thing
	for i, s := range d.SensorTypes {
		out = append(out, Thing{Kind: "sensor type", Name: s.ID, Path: fmt.Sprintf("sensor_types[%d]", i), key: s.ID})
	}
	for i, n := range d.Networks {
		out = append(out, Thing{Kind: "network", Name: n.Prefix, Path: fmt.Sprintf("networks[%d]", i), key: n.Prefix})
	}
	for i, a := range d.Accounts {
		out = append(out, thingsOf(a, fmt.Sprintf("accounts[%d].", i))...)
	}
	return out
}

func thingsOf(a Account, at string) []Thing {
	var out []Thing
	add := func(kind, list string, i int, name, key string) {
		out = append(out, Thing{kind, a.Name, name, fmt.Sprintf("%s%s[%d]", at, list, i), key})
	}
	for i, t := range a.Tokens {
		add("token", "tokens", i, t.Label(), t.Hash())
	}
	if a.SOAP != nil {
		out = append(out, Thing{Kind: "SOAP username", Account: a.Name, Name: a.SOAP.Username, Path: at + "soap"})
	}
	for i, r := range a.Relays.Geo {
		add("geo relay", "relays.geo", i, r.ID, r.ID)
	}
	for i, r := range a.Relays.VMN {
		add("vmn relay", "relays.vmn", i, r.ID, r.ID)
	}
	for i, r := range a.Rules {
		add("rule", "rules", i, r.ID, r.ID)
	}
	for i, d := range a.Decoders {
		add("decoder", "decoders", i, d.ID, d.ID)
	}
	for i, s := range a.SIMs {
		add("SIM", "sims", i, s.ICCID, s.ICCID)
	}
	for i, l := range a.Locations {
		add("location", "locations", i, l.ID, l.ID)
	}
	for i, l := range a.Ledgers {
		add("ledger", "ledgers", i, l.ID, l.ID)
	}
	for i, t := range a.SIP.Trunks {
		add("trunk", "sip.trunks", i, t.Label(), t.key())
	}
	return out
}

// Label names the token without showing it, by the digits of its mask.
func (t Token) Label() string {
	label := t.Hash()[:maskDigits]
	if t.Source != "" {
		label += " (" + t.Source + ")"
	}
	return label
}

// Label names the trunk by its addresses.
func (t Trunk) Label() string { return strings.Join(t.SourceIPs, " ") }
