package inventory

import (
	"cmp"
	"fmt"
	"strings"
)

// recordList has operations on the records of one kind in O, a document or an account.
type recordList[O any] struct {
	merge    func(old, fresh *O)                  // merges the records of fresh into those of old
	subtract func(old, fresh *O)                  // deletes from old the records that fresh has
	names    func(o *O, path string) []RecordName // lists the names of the records with their paths, which begin with path
}

// list returns the operations on a kind of records. kind is RecordName.Kind, and path the path of
// the list in its owner. key returns the unique key of a record, label its name in messages,
// and join merges a fresh record into an old one.
func list[O, T any](kind, path string, records func(*O) *[]T, key, label func(T) string, join func(old, fresh T) T) recordList[O] {
	return recordList[O]{
		merge:    func(old, fresh *O) { *records(old) = merge(*records(old), *records(fresh), key, join) },
		subtract: func(old, fresh *O) { *records(old) = omitted(*records(old), *records(fresh), key) },
		names: func(o *O, prefix string) (names []RecordName) {
			for i, r := range *records(o) {
				names = append(names, RecordName{Kind: kind, Name: label(r), Path: fmt.Sprintf("%s%s[%d]", prefix, path, i), key: key(r)})
			}
			return names
		},
	}
}

// named is list for records whose key is also their label; a fresh record replaces the
// old one.
func named[O, T any](kind, path string, records func(*O) *[]T, key func(T) string) recordList[O] {
	return list(kind, path, records, key, key, func(_, fresh T) T { return fresh })
}

// recordsOfDocument returns the lists of records that belong to no account.
func recordsOfDocument() []recordList[Document] {
	return []recordList[Document]{
		named("sensor type", "sensor_types", func(d *Document) *[]SensorType { return &d.SensorTypes }, func(s SensorType) string { return s.ID }),
		named("network", "networks", func(d *Document) *[]Network { return &d.Networks }, func(n Network) string { return n.Prefix }),
	}
}

func recordsOfAccount() []recordList[Account] {
	return []recordList[Account]{
		list("token", "tokens", func(a *Account) *[]Token { return &a.Tokens }, Token.Hash, Token.Label, mergeToken),
		login(),
		named("geo relay", "relays.geo", func(a *Account) *[]GeoRelay { return &a.Relays.Geo }, func(r GeoRelay) string { return r.ID }),
		named("vmn relay", "relays.vmn", func(a *Account) *[]NumberRelay { return &a.Relays.VMN }, func(r NumberRelay) string { return r.ID }),
		named("rule", "rules", func(a *Account) *[]Rule { return &a.Rules }, func(r Rule) string { return r.ID }),
		list("decoder", "decoders", func(a *Account) *[]Decoder { return &a.Decoders }, decoderID, decoderID, mergeDecoder),
		list("SIM", "sims", func(a *Account) *[]SIM { return &a.SIMs }, iccid, iccid, mergeSIM),
		named("location", "locations", func(a *Account) *[]Location { return &a.Locations }, func(l Location) string { return l.ID }),
		named("ledger", "ledgers", func(a *Account) *[]Ledger { return &a.Ledgers }, func(l Ledger) string { return l.ID }),
		named("trunk", "sip.trunks", func(a *Account) *[]Trunk { return &a.SIP.Trunks }, Trunk.Label),
	}
}

// login returns the operations on the SOAP login of an account.
func login() recordList[Account] {
	return recordList[Account]{
		merge: func(old, fresh *Account) { old.SOAP = cmp.Or(fresh.SOAP, old.SOAP) },
		subtract: func(old, fresh *Account) {
			if fresh.SOAP != nil {
				old.SOAP = nil
			}
		},
		names: func(a *Account, path string) []RecordName {
			if a.SOAP == nil {
				return nil
			}
			return []RecordName{{Kind: "SOAP username", Name: a.SOAP.Username, Path: path + "soap"}}
		},
	}
}

func decoderID(d Decoder) string { return d.ID }
func iccid(s SIM) string         { return s.ICCID }

func mergeToken(old, fresh Token) Token {
	fresh.Secret = cmp.Or(fresh.Secret, old.Secret)
	return fresh
}

func mergeDecoder(old, fresh Decoder) Decoder {
	key := func(m Mapping) string { return m.Key }
	fresh.Sensors = merge(old.Sensors, fresh.Sensors, key, func(_, fresh Mapping) Mapping { return fresh })
	return fresh
}

func mergeSIM(old, fresh SIM) SIM {
	oldCodes := old.codes()
	for i, code := range fresh.codes() {
		*code.value = cmp.Or(*code.value, *oldCodes[i].value)
	}
	return fresh
}

// RecordName names a record that a document declares.
type RecordName struct {
	Kind    string // sensor type, decoder, SIM and so on
	Account string // name of the account; empty for records that belong to none
	Name    string // of the record, for messages
	Path    string // of the record in its document
	key     string // unique among the records of a kind
}

// String returns the full name of the record: "account acme: decoder d1", or "sensor type
// temperature".
func (n RecordName) String() string {
	name := n.Kind + " " + n.Name
	if n.Account != "" {
		return "account " + n.Account + ": " + name
	}
	return name
}

// identity is the same for the same record in two documents.
type identity struct{ kind, account, key string }

func (n RecordName) identity() identity { return identity{n.Kind, n.Account, n.key} }

// RecordNames lists the records of a document without its accounts, which are never removed.
func RecordNames(d Document) []RecordName {
	var names []RecordName
	for _, list := range recordsOfDocument() {
		names = append(names, list.names(&d, "")...)
	}
	for i := range d.Accounts {
		a := &d.Accounts[i]
		for _, list := range recordsOfAccount() {
			for _, name := range list.names(a, fmt.Sprintf("accounts[%d].", i)) {
				name.Account = a.Name
				names = append(names, name)
			}
		}
	}
	return names
}

// Label returns a name of the token that does not reveal it: the digits of its mask.
func (t Token) Label() string {
	label := t.Hash()[:maskDigits]
	if t.Source != "" {
		label += " (" + t.Source + ")"
	}
	return label
}

// Label returns the addresses of the trunk.
func (t Trunk) Label() string { return strings.Join(t.SourceIPs, " ") }
