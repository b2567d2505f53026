package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/penstock/penstock/config/strict"
)

// Default is the name of documents without a name.
const Default = "default"

// Owner returns the name of the document, under which it owns its records.
func (d Document) Owner() string { return cmp.Or(d.Name, Default) }

// Set has the records of all documents by document. It is stored as JSON, in which the fields
// of the default document are at the top level.
type Set struct {
	Document
	Named []Document `json:"documents,omitempty"`
	// Revision is a new random text each time that the set is stored.
	Revision string `json:"revision,omitempty"`
	// Foreign lists, by document, the accounts of other documents in which the document has
	// records.
	Foreign map[string][]string `json:"foreign_accounts,omitempty"`
}

// Parts returns the documents, the default document first.
func (s Set) Parts() []Document { return append([]Document{s.Document}, s.Named...) }

// Names lists the documents that have records or accounts.
func (s Set) Names() []string {
	var names []string
	for _, part := range s.Parts() {
		if len(part.SensorTypes)+len(part.Networks)+len(part.Accounts) > 0 {
			names = append(names, part.Owner())
		}
	}
	return names
}

// Merged returns the records of all documents, merged.
func (s Set) Merged() Document {
	parts := s.Parts()
	for i := range parts {
		parts[i].Name = ""
	}
	return Merge(parts...)
}

// Part returns the document of an owner, without records if the set does not have it.
func (s Set) Part(owner string) Document {
	for _, part := range s.Parts() {
		if part.Owner() == owner {
			return part
		}
	}
	return Document{Name: owner}
}

// Without returns the set without a document.
func (s Set) Without(owner string) Set {
	s.Named = slices.DeleteFunc(slices.Clone(s.Named), func(part Document) bool { return part.Owner() == owner })
	if owner == Default {
		s.Document = Document{}
	}
	return s
}

// With returns the set in which part replaces the document with its name.
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

// Owners finds the document that owns an account.
type Owners struct {
	names   []string
	index   []Index
	foreign []map[string]bool
}

// Owners returns the owners of the accounts of the set.
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

// OwnerOf returns the name of the document that owns an account; empty if none does.
func (o Owners) OwnerOf(acct Account) string {
	for i, name := range o.names {
		if o.index[i].Find(acct) >= 0 && !o.foreign[i][acct.Name] {
			return name
		}
	}
	return ""
}

// Join returns the set after a document was applied. The document's accounts that other
// documents own become foreign to it.
func (s Set) Join(fresh Document) Set {
	owner := fresh.Owner()
	var foreign []string
	part := Merge(s.Part(owner), fresh)
	owners := s.Without(owner).Owners()
	for _, a := range part.Accounts {
		if owners.OwnerOf(a) != "" {
			foreign = append(foreign, a.Name)
		}
	}
	return s.With(part).withForeign(owner, foreign)
}

// withForeign returns the set with accounts as the foreign accounts of a document.
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

// Conflicts returns a mistake for each record and setting that another document owns.
func (s Set) Conflicts(fresh Document) strict.Mistakes {
	var mistakes strict.Mistakes
	set := s.Without(fresh.Owner())
	owned := make(map[identity]string)
	for _, part := range set.Parts() {
		for _, name := range RecordNames(part) {
			owned[name.identity()] = part.Owner()
		}
	}
	for _, name := range RecordNames(fresh) {
		if owner, isOwned := owned[name.identity()]; isOwned {
			mistakes.Add(name.Path, "%s belongs to the document %q", name, owner)
		}
	}
	owners := set.Owners()
	for i, a := range fresh.Accounts {
		if owner := owners.OwnerOf(a); owner != "" {
			refuse := func(declared bool, field string) {
				mistakes.AddIf(declared, fmt.Sprintf("accounts[%d].%s", i, field), "account %s belongs to the document %q", a.Name, owner)
			}
			refuse(a.Credit != nil, "credit")
			refuse(len(a.Permissions) > 0, "permissions")
			refuse(len(a.WebhookSecrets) > 0, "webhook_secret")
			refuse(a.CallbackURL != "", "callback_url")
		}
	}
	return mistakes
}

// Adopt returns the set in which the document owns all that it declares, and the names of the
// records that it took over: "account acme: decoder d1 (from a)".
func (s Set) Adopt(fresh Document) (Set, []string) {
	declared := make(map[identity]bool)
	for _, name := range RecordNames(fresh) {
		declared[name.identity()] = true
	}
	var adopted []string
	owners, freshAccounts, settings := s.Owners(), IndexOf(fresh.Accounts), Document{Name: fresh.Name}
	for _, part := range s.Without(fresh.Owner()).Parts() {
		origin := " (from " + part.Owner() + ")"
		for _, name := range RecordNames(part) {
			if declared[name.identity()] {
				adopted = append(adopted, name.String()+origin)
			}
		}
		document, foreign := Without(part, fresh), s.Foreign[part.Owner()]
		accounts := document.Accounts
		document.Accounts = nil
		for _, a := range accounts {
			isDeclared := freshAccounts.Find(a) >= 0
			if isDeclared && owners.OwnerOf(a) == part.Owner() {
				adopted = append(adopted, "account "+a.Name+origin)
				settings.Accounts = append(settings.Accounts, a.settings())
				foreign = append(slices.Clone(foreign), a.Name)
				a = a.bare()
			}
			if !isDeclared || a.hasRecords() {
				document.Accounts = append(document.Accounts, a)
			}
		}
		s = s.With(document).withForeign(part.Owner(), foreign)
	}
	if len(settings.Accounts) > 0 {
		s = s.With(Merge(s.Part(fresh.Owner()), settings))
	}
	return s, adopted
}

// Prune returns the old document without the records of removed and the accounts that the fresh
// document omits. An omitted account that still has records stays without its settings.
func Prune(old, removed, fresh Document) Document {
	pruned := Without(old, removed)
	accounts, freshAccounts := pruned.Accounts, IndexOf(fresh.Accounts)
	pruned.Accounts = nil
	for _, a := range accounts {
		isDeclared := freshAccounts.Find(a) >= 0
		if !isDeclared {
			a = a.bare()
		}
		if isDeclared || a.hasRecords() {
			pruned.Accounts = append(pruned.Accounts, a)
		}
	}
	return pruned
}

// DeclaredSIM is a SIM of a set with its document and account.
type DeclaredSIM struct {
	SIM
	Document string // name of the owner
	Account  string // name
}

// SplitSIMs returns the set without SIMs, and the SIMs. They are stored apart, because there
// may be a million of them and an apply concerns few.
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

// JoinSIMs returns the set with SIMs added to their documents and accounts.
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

// SIMKeys has the unique values of SIMs.
type SIMKeys struct{ ICCIDs, IMSIs, MSISDNs []string }

// SIMKeys lists the unique values of the SIMs of the document, and the ICCIDs of its relays.
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
