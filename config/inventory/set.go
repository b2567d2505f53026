package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/penstock/penstock/config/strict"
)

// Default is the name of what documents without a name declare.
const Default = "default"

// Owner is the name under which the document owns what it declares.
func (d Document) Owner() string { return cmp.Or(d.Name, Default) }

// Set has the declarations of all documents, by document: each owns the records that it
// declared. It is kept as JSON; what documents without a name declare stands there as a
// document does.
type Set struct {
	Document
	Named []Document `json:"documents,omitempty"`
	// Revision is given anew each time that the set is kept.
	Revision string `json:"revision,omitempty"`
	// Foreign lists, by document, the accounts of other documents in which it has
	// records.
	Foreign map[string][]string `json:"foreign_accounts,omitempty"`
}

// Parts returns the documents, that of the default first.
func (s Set) Parts() []Document { return append([]Document{s.Document}, s.Named...) }

// Names lists the documents that declare something.
func (s Set) Names() []string {
	var names []string
	for _, part := range s.Parts() {
		if len(part.SensorTypes)+len(part.Networks)+len(part.Accounts) > 0 {
			names = append(names, part.Owner())
		}
	}
	return names
}

// Whole returns what all documents declare, as one.
func (s Set) Whole() Document {
	parts := s.Parts()
	for i := range parts {
		parts[i].Name = ""
	}
	return Merge(parts...)
}

// Part returns what a document declares, nothing if it is not known.
func (s Set) Part(owner string) Document {
	for _, part := range s.Parts() {
		if part.Owner() == owner {
			return part
		}
	}
	return Document{Name: owner}
}

// Less returns the set without a document.
func (s Set) Less(owner string) Set {
	s.Named = slices.DeleteFunc(slices.Clone(s.Named), func(part Document) bool { return part.Owner() == owner })
	if owner == Default {
		s.Document = Document{}
	}
	return s
}

// With returns the set with the part in the place of what its document declared.
func (s Set) With(part Document) Set {
	if part.Owner() == Default {
		s.Document = part
		return s
	}
	s.Named = slices.Clone(s.Named)
	i := slices.IndexFunc(s.Named, func(d Document) bool { return d.Name == part.Name })
	if i < 0 {
		i, s.Named = len(s.Named), append(s.Named, part)
	}
	s.Named[i] = part
	return s
}

// Seal returns the set with each document sealed.
func (s Set) Seal() Set {
	s.Document = Seal(s.Document)
	s.Named = slices.Clone(s.Named)
	for i := range s.Named {
		s.Named[i] = Seal(s.Named[i])
	}
	return s
}

// Owners finds the document to which an account belongs.
type Owners struct {
	names   []string
	index   []Index
	foreign []map[string]bool
}

// Owners returns the owners of the accounts as the set is now.
func (s Set) Owners() (o Owners) {
	for _, part := range s.Parts() {
		foreign := make(map[string]bool)
		for _, name := range s.Foreign[part.Owner()] {
			foreign[name] = true
		}
		o.names, o.index, o.foreign = append(o.names, part.Owner()), append(o.index, IndexOf(part.Accounts)), append(o.foreign, foreign)
	}
	return o
}

// Of returns the document to which an account belongs, "" if to none.
func (o Owners) Of(acct Account) string {
	for i, name := range o.names {
		if o.index[i].Find(acct) >= 0 && !o.foreign[i][acct.Name] {
			return name
		}
	}
	return ""
}

// Join returns the set once the document has been applied. What the document
// declares in accounts of others is noted as such.
func (s Set) Join(fresh Document) Set {
	owner := fresh.Owner()
	var foreign []string
	part := Merge(s.Part(owner), fresh)
	owners := s.Less(owner).Owners()
	for _, a := range part.Accounts {
		if owners.Of(a) != "" {
			foreign = append(foreign, a.Name)
		}
	}
	return s.With(part).withForeign(owner, foreign)
}

// withForeign returns the set with other accounts that are foreign to a document.
func (s Set) withForeign(owner string, accounts []string) Set {
	foreign := map[string][]string{}
	maps.Copy(foreign, s.Foreign)
	foreign[owner] = accounts
	if len(accounts) == 0 {
		delete(foreign, owner)
	}
	s.Foreign = foreign
	return s
}

// Conflicts lists what the document declares although another one owns it.
func (s Set) Conflicts(fresh Document) strict.Mistakes {
	var mistakes strict.Mistakes
	set := s.Less(fresh.Owner())
	owned := make(map[identity]string)
	for _, part := range set.Parts() {
		for _, t := range Things(part) {
			owned[t.identity()] = part.Owner()
		}
	}
	for _, t := range Things(fresh) {
		if owner, taken := owned[t.identity()]; taken {
			mistakes.Add(t.Path, "%s belongs to the document %q", t, owner)
		}
	}
	owners := set.Owners()
	for i, a := range fresh.Accounts {
		if owner := owners.Of(a); owner != "" {
			refuse := func(isGiven bool, field string) {
				mistakes.AddIf(isGiven, fmt.Sprintf("accounts[%d].%s", i, field), "account %s belongs to the document %q", a.Name, owner)
			}
			refuse(a.Credit != nil, "credit")
			refuse(len(a.Permissions) > 0, "permissions")
			refuse(len(a.WebhookSecrets) > 0, "webhook_secret")
			refuse(a.CallbackURL != "", "callback_url")
		}
	}
	return mistakes
}

// Adopt returns the set in which the document owns whatever it declares, and what
// it has taken from whom: "account acme: decoder d1 (from a)".
func (s Set) Adopt(fresh Document) (Set, []string) {
	mine := make(map[identity]bool)
	for _, t := range Things(fresh) {
		mine[t.identity()] = true
	}
	var taken []string
	owners, named, settings := s.Owners(), IndexOf(fresh.Accounts), Document{Name: fresh.Name}
	for _, part := range s.Less(fresh.Owner()).Parts() {
		src := " (from " + part.Owner() + ")"
		for _, t := range Things(part) {
			if mine[t.identity()] {
				taken = append(taken, t.String()+src)
			}
		}
		document, foreign := Without(part, fresh), s.Foreign[part.Owner()]
		accounts := document.Accounts
		document.Accounts = nil
		for _, a := range accounts {
			isNamed := named.Find(a) >= 0
			if isNamed && owners.Of(a) == part.Owner() {
				taken = append(taken, "account "+a.Name+src)
				settings.Accounts = append(settings.Accounts, a.settings())
				foreign = append(slices.Clone(foreign), a.Name)
				a = a.bare()
			}
			if !isNamed || a.holdsRecords() {
				document.Accounts = append(document.Accounts, a)
			}
		}
		s = s.With(document).withForeign(part.Owner(), foreign)
	}
	if len(settings.Accounts) > 0 {
		s = s.With(Merge(s.Part(fresh.Owner()), settings))
	}
	return s, taken
}

// Prune returns the document without what gone names: its records, and the
// accounts that the fresh document does not name. An account in which a record
// stays is still there, without its settings.
func Prune(old, gone, fresh Document) Document {
	pruned := Without(old, gone)
	accounts, named := pruned.Accounts, IndexOf(fresh.Accounts)
	pruned.Accounts = nil
	for _, a := range accounts {
		isNamed := named.Find(a) >= 0
		if !isNamed {
			a = a.bare()
		}
		if isNamed || a.holdsRecords() {
			pruned.Accounts = append(pruned.Accounts, a)
		}
	}
	return pruned
}

// DeclaredSIM is a SIM of a set, and the document and the account that declare it.
type DeclaredSIM struct {
	SIM
	Document string // its owner
	Account  string // its name
}

// SplitSIMs returns the set without SIMs, and them. There may be very many, of which
// a document names few.
func (s Set) SplitSIMs() (Set, []DeclaredSIM) {
	var sims []DeclaredSIM
	for _, part := range s.Parts() {
		part.Accounts = slices.Clone(part.Accounts)
		for i := range part.Accounts {
			a := &part.Accounts[i]
			for _, sim := range a.SIMs {
				sims = append(sims, DeclaredSIM{sim, part.Owner(), a.Name})
			}
			a.SIMs = nil
		}
		s = s.With(part)
	}
	return s, sims
}

// JoinSIMs returns the set with the SIMs in their places.
func (s Set) JoinSIMs(sims []DeclaredSIM) Set {
	byDocument := make(map[string][]DeclaredSIM)
	for _, sim := range sims {
		byDocument[sim.Document] = append(byDocument[sim.Document], sim)
	}
	for _, owner := range slices.Sorted(maps.Keys(byDocument)) {
		part := s.Part(owner)
		part.Accounts = slices.Clone(part.Accounts)
		index := IndexOf(part.Accounts)
		for _, sim := range byDocument[owner] {
			i := index.Find(Account{Name: sim.Account})
			if i < 0 {
				i, part.Accounts = len(part.Accounts), append(part.Accounts, Account{Name: sim.Account})
				index.add(i, part.Accounts[i])
			}
			part.Accounts[i].SIMs = append(part.Accounts[i].SIMs, sim.SIM)
		}
		s = s.With(part)
	}
	return s
}

// SIMKeys are the values by which a document names SIMs, and claims them.
type SIMKeys struct{ ICCIDs, IMSIs, MSISDNs []string }

// SIMKeys lists what the document names, also by a relay.
func (d Document) SIMKeys() (k SIMKeys) {
	add := func(list *[]string, value string) {
		if value = strings.TrimPrefix(value, "+"); value != "" {
			*list = append(*list, value)
		}
	}
	for _, a := range d.Accounts {
		for _, sim := range a.SIMs {
			add(&k.ICCIDs, sim.ICCID)
			add(&k.IMSIs, sim.IMSI)
			add(&k.MSISDNs, sim.MSISDN)
		}
		for _, r := range a.Relays.Geo {
			add(&k.ICCIDs, r.ICCID)
		}
	}
	return k
}
