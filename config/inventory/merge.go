package inventory

import "cmp"

// Merge returns what is declared once the new document has been applied over
// the old one. A record that the new document names stands as it says, an
// account's own fields only where it gives them; what it omits stays. Records
// are the same by their key: accounts by id or name, tokens by hash, SIMs by
// ICCID, networks by prefix, trunks by their addresses, all else by id.
// A decoder's sensors are joined by key, and secrets that a record omits stay.
func Merge(old, fresh Document) Document {
	return mergeAll(old, fresh)
}

// mergeAll merges each document over those before it.
func mergeAll(parts ...Document) (whole Document) {
	for i, part := range parts {
		part = clone(part)
		if i == 0 {
			whole = part
			continue
		}
		whole = Document{
			Name:        cmp.Or(part.Name, whole.Name),
			SensorTypes: merge(whole.SensorTypes, part.SensorTypes, SensorType.key, replace),
			Networks:    merge(whole.Networks, part.Networks, Network.key, replace),
			Accounts:    mergeAccounts(whole.Accounts, part.Accounts),
		}
	}
	return whole
}

// Omitted returns the records of the old document that the new one does not
// name: what a prune would remove. An account that only lost records is there
// with its id and name and those records.
func Omitted(old, fresh Document) Document {
	old = clone(old)
	gone := Document{
		SensorTypes: omitted(old.SensorTypes, fresh.SensorTypes, SensorType.key),
		Networks:    omitted(old.Networks, fresh.Networks, Network.key),
	}
	named := IndexOf(fresh.Accounts)
	for _, a := range old.Accounts {
		i := named.Find(a)
		if i < 0 {
			gone.Accounts = append(gone.Accounts, a)
		} else if lost, any := omittedOf(a, fresh.Accounts[i]); any {
			gone.Accounts = append(gone.Accounts, lost)
		}
	}
	return gone
}

// Without returns the old document without the records that gone names. Its
// accounts stay, with their own settings.
func Without(old, gone Document) Document {
	old = clone(old)
	old.SensorTypes = omitted(old.SensorTypes, gone.SensorTypes, SensorType.key)
	old.Networks = omitted(old.Networks, gone.Networks, Network.key)
	named := IndexOf(gone.Accounts)
	for i, a := range old.Accounts {
		at := named.Find(a)
		if at < 0 {
			continue
		}
		left, _ := omittedOf(a, gone.Accounts[at])
		old.Accounts[i] = mergeAccount(a.settings(), left)
	}
	return old
}

// settings is the account without its records.
func (a Account) settings() Account {
	return Account{ID: a.ID, Name: a.Name, Credit: a.Credit, Permissions: a.Permissions, WebhookSecrets: a.WebhookSecrets, CallbackURL: a.CallbackURL}
}

// bare is the account without its settings.
func (a Account) bare() Account {
	a.Credit, a.Permissions, a.WebhookSecrets, a.CallbackURL = nil, nil, nil, ""
	return a
}

func (s SensorType) key() string  { return s.ID }
func (n Network) key() string     { return n.Prefix }
func (r GeoRelay) key() string    { return r.ID }
func (r NumberRelay) key() string { return r.ID }
func (l Location) key() string    { return l.ID }
func (d Decoder) key() string     { return d.ID }
func (m Mapping) key() string     { return m.Key }
func (r Rule) key() string        { return r.ID }
func (s SIM) key() string         { return s.ICCID }
func (l Ledger) key() string      { return l.ID }

func (t Trunk) key() string {
	var key string
	for _, ip := range t.SourceIPs {
		key += ip + " "
	}
	return key
}

func mergeAccounts(old, fresh []Account) []Account {
	index := IndexOf(old)
	for _, a := range fresh {
		if i := index.Find(a); i >= 0 {
			old[i] = mergeAccount(old[i], a)
			index.add(i, old[i])
		} else {
			old = append(old, a)
			index.add(len(old)-1, a)
		}
	}
	return old
}

func mergeAccount(old, fresh Account) Account {
	return Account{
		ID: cmp.Or(fresh.ID, old.ID), Name: cmp.Or(fresh.Name, old.Name),
		Credit: cmp.Or(fresh.Credit, old.Credit), SOAP: cmp.Or(fresh.SOAP, old.SOAP),
		Permissions:    given(old.Permissions, fresh.Permissions),
		WebhookSecrets: given(old.WebhookSecrets, fresh.WebhookSecrets),
		CallbackURL:    cmp.Or(fresh.CallbackURL, old.CallbackURL),
		Tokens:         merge(old.Tokens, fresh.Tokens, Token.Hash, mergeToken),
		Relays: Relays{
			Geo: merge(old.Relays.Geo, fresh.Relays.Geo, GeoRelay.key, replace),
			VMN: merge(old.Relays.VMN, fresh.Relays.VMN, NumberRelay.key, replace),
		},
		Locations: merge(old.Locations, fresh.Locations, Location.key, replace),
		Decoders:  merge(old.Decoders, fresh.Decoders, Decoder.key, mergeDecoder),
		Rules:     merge(old.Rules, fresh.Rules, Rule.key, replace),
		SIMs:      merge(old.SIMs, fresh.SIMs, SIM.key, mergeSIM),
		SIP:       SIP{Trunks: merge(old.SIP.Trunks, fresh.SIP.Trunks, Trunk.key, replace)},
		Ledgers:   merge(old.Ledgers, fresh.Ledgers, Ledger.key, replace),
	}
}

func mergeToken(old, fresh Token) Token {
	fresh.Secret = cmp.Or(fresh.Secret, old.Secret)
	return fresh
}

func mergeDecoder(old, fresh Decoder) Decoder {
	fresh.Sensors = merge(old.Sensors, fresh.Sensors, Mapping.key, replace)
	return fresh
}

func mergeSIM(old, fresh SIM) SIM {
	before := old.codes()
	for i, code := range fresh.codes() {
		*code.value = cmp.Or(*code.value, *before[i].value)
	}
	return fresh
}

func omittedOf(old, fresh Account) (lost Account, any bool) {
	lost = Account{
		ID: old.ID, Name: old.Name,
		Tokens: omitted(old.Tokens, fresh.Tokens, Token.Hash),
		Relays: Relays{
			Geo: omitted(old.Relays.Geo, fresh.Relays.Geo, GeoRelay.key),
			VMN: omitted(old.Relays.VMN, fresh.Relays.VMN, NumberRelay.key),
		},
		Locations: omitted(old.Locations, fresh.Locations, Location.key),
		Decoders:  omitted(old.Decoders, fresh.Decoders, Decoder.key),
		Rules:     omitted(old.Rules, fresh.Rules, Rule.key),
		SIMs:      omitted(old.SIMs, fresh.SIMs, SIM.key),
		SIP:       SIP{Trunks: omitted(old.SIP.Trunks, fresh.SIP.Trunks, Trunk.key)},
		Ledgers:   omitted(old.Ledgers, fresh.Ledgers, Ledger.key),
	}
	if fresh.SOAP == nil {
		lost.SOAP = old.SOAP
	}
	return lost, lost.holdsRecords()
}

// holdsRecords reports whether the account has records besides its settings.
func (a Account) holdsRecords() bool {
	n := len(a.Tokens) + len(a.Relays.Geo) + len(a.Relays.VMN) + len(a.Locations) +
		len(a.Decoders) + len(a.Rules) + len(a.SIMs) + len(a.SIP.Trunks) + len(a.Ledgers)
	return n > 0 || a.SOAP != nil
}

// merge keeps the old order and appends what is new.
func merge[T any](old, fresh []T, key func(T) string, join func(old, fresh T) T) []T {
	index := make(map[string]int, len(old)+len(fresh))
	for i, o := range old {
		index[key(o)] = i
	}
	for _, f := range fresh {
		if i, ok := index[key(f)]; ok {
			old[i] = join(old[i], f)
			continue
		}
		index[key(f)] = len(old)
		old = append(old, f)
	}
	return old
}

func omitted[T any](old, fresh []T, key func(T) string) (gone []T) {
	named := make(map[string]bool, len(fresh))
	for _, f := range fresh {
		named[key(f)] = true
	}
	for _, o := range old {
		if !named[key(o)] {
			gone = append(gone, o)
		}
	}
	return gone
}

func replace[T any](_, fresh T) T { return fresh }

func given(old, fresh []string) []string {
	if len(fresh) > 0 {
		return fresh
	}
	return old
}
