package inventory

import "fmt"

// claimsOf compares the document's claims with those that stand from an earlier
// one: of every record that it does not declare anew.
func (c *checker) claimsOf(part, d Document) {
	source := "an earlier inventory"
	if part.Owner() != d.Owner() {
		source = fmt.Sprintf("the document %q", part.Owner())
	}
	named := IndexOf(d.Accounts)
	for _, old := range Omitted(part, d).Accounts {
		owner := fmt.Sprintf("account %q of %s", old.Name, source)
		for _, t := range old.Tokens {
			c.taken("token", t.Hash(), owner)
			c.taken("source", t.Source, owner)
		}
		for _, r := range old.Relays.Geo {
			c.taken("prefix", r.Prefix, owner)
		}
		for _, r := range old.Relays.VMN {
			c.taken("number", r.Number, owner)
		}
		for _, s := range old.SIMs {
			c.taken("SIM", s.ICCID, owner)
			c.taken("IMSI", s.IMSI, owner)
			c.taken("MSISDN", s.MSISDN, owner)
		}
		if old.SOAP != nil {
			c.taken("SOAP username", old.SOAP.Username, owner)
		}
		if i := named.Find(old); i >= 0 {
			c.secondImport(d.Accounts[i], old, fmt.Sprintf("accounts[%d].", i))
		}
	}
}

// taken notes a mistake where the document claims what stands elsewhere.
func (c *checker) taken(kind, value, owner string) {
	if path, claimed := c.claims[kind+" "+value]; claimed && value != "" {
		c.mistakes.Add(path, "already taken by %s", owner)
	}
}

// secondImport refuses a second imported location beside one that stands.
func (c *checker) secondImport(a, old Account, at string) {
	for _, standing := range old.Locations {
		for i, l := range a.Locations {
			if standing.Imported && l.Imported {
				c.mistakes.Add(fmt.Sprintf("%slocations[%d].imported", at, i), "expected one imported location, %q stands from an earlier inventory", standing.ID)
			}
		}
	}
}
