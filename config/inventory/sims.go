package inventory

import (
	"maps"
	"slices"
	"strings"
)

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
