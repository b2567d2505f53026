package inventory

import (
	"cmp"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/penstock/penstock/config/strict"
)

// checker checks a decoded document, collects its mistakes and fills in defaults.
type checker struct {
	Options
	known         known // the records of all earlier inventories
	remaining     known // the records of earlier inventories that a prune does not remove
	mistakes      *strict.Mistakes
	claims        map[string]string // path of the first record with a unique value, by kind and value
	kinds         map[string]kind
	fields        map[reflect.Type][]field // cached, because there may be very many SIMs
	sensorTypeIDs []string
	decoderErr    error // of HasDecoder
}

func (c *checker) document(d *Document) {
	c.tags(reflect.ValueOf(d).Elem(), "")
	for i, s := range d.SensorTypes {
		path := fmt.Sprintf("sensor_types[%d].", i)
		c.claim("sensor type", s.ID, path+"id")
		c.mistakes.AddIf(s.ImperialSlope < 0, path+"imperial_slope", "expected a number above 0, got %g", s.ImperialSlope)
	}
	for _, s := range slices.Concat(d.SensorTypes, c.remaining.SensorTypes) {
		c.sensorTypeIDs = append(c.sensorTypeIDs, s.ID)
	}
	for i, n := range d.Networks {
		c.claim("network", n.Prefix, fmt.Sprintf("networks[%d].prefix", i))
	}
	for i := range d.Accounts {
		c.account(&d.Accounts[i], fmt.Sprintf("accounts[%d].", i))
	}
}

func (c *checker) account(a *Account, prefix string) {
	c.claim("account name", a.Name, prefix+"name")
	old := c.known.account(Account{Name: a.Name})
	c.mistakes.AddIf(NumericName(a.Name) && a.Name != fmt.Sprint(a.ID) && old.Name == "",
		prefix+"name", "expected a name that is not a number, which would be read as an account's id, got %q", a.Name)
	c.mistakes.AddIf(a.ID < 0, prefix+"id", "expected more than 0, got %d", a.ID)
	if a.ID != 0 {
		c.claim("account id", fmt.Sprint(a.ID), prefix+"id")
		c.mistakes.AddIf(old.ID != 0 && old.ID != a.ID, prefix+"id", "expected %d, the id of the account of this name", old.ID)
	}
	for i, t := range a.Tokens {
		path := fmt.Sprintf("%stokens[%d].", prefix, i)
		if !c.mistakes.Has(path + "token") {
			c.claim("token", t.Hash(), path+"token")
		}
		c.secret(t, path)
		c.claim("source", t.Source, path+"source")
	}
	if a.SOAP != nil {
		c.claim("SOAP username", a.SOAP.Username, prefix+"soap.username")
		c.mistakes.AddIf(strings.TrimSpace(a.SOAP.Password) == "", prefix+"soap.password", "expected a password")
	}
	c.callback(a.CallbackURL, prefix+"callback_url")
	for i := range a.SIMs {
		s, path := &a.SIMs[i], fmt.Sprintf("%ssims[%d].", prefix, i)
		c.claim("SIM", s.ICCID, path+"iccid")
		c.claim("IMSI", s.IMSI, path+"imsi")
		c.claim("MSISDN", s.MSISDN, path+"msisdn")
		s.CurrentState = cmp.Or(s.CurrentState, "pending")
	}
	c.relays(a, prefix)
	imported := ""
	for i, l := range a.Locations {
		path := fmt.Sprintf("%slocations[%d]", prefix, i)
		c.claim(prefix+"location", l.ID, path+".id")
		if l.Imported {
			c.mistakes.AddIf(imported != "", path+".imported", "expected one imported location, the first is %s", imported)
			imported = path
		}
	}
	for i := range a.Decoders {
		c.decoder(&a.Decoders[i], prefix, fmt.Sprintf("%sdecoders[%d].", prefix, i))
	}
	for i := range a.Rules {
		c.rule(a, &a.Rules[i], prefix, fmt.Sprintf("%srules[%d].", prefix, i))
	}
	for i, trunk := range a.SIP.Trunks {
		c.mistakes.AddIf(len(trunk.SourceIPs) == 0, fmt.Sprintf("%ssip.trunks[%d].source_ips", prefix, i), "expected at least one address")
	}
	for i, l := range a.Ledgers {
		path := fmt.Sprintf("%sledgers[%d].", prefix, i)
		c.claim(prefix+"ledger", l.ID, path+"id")
		c.mistakes.AddIf(l.Expiry < 0, path+"expiry", "expected 0s (never) or more")
	}
}

// NumericName reports whether the name of an account has digits only. Commands and filters
// read such a name as an id.
func NumericName(name string) bool { return name != "" && strings.Trim(name, "0123456789") == "" }

// Check returns the mistakes in a token, without those that depend on other records.
func (t Token) Check() strict.Mistakes {
	var mistakes strict.Mistakes
	c := checker{mistakes: &mistakes}
	c.tags(reflect.ValueOf(t), "")
	c.secret(t, "")
	return mistakes
}

// Check returns the mistakes in the settings of an account, without those that depend on
// other records.
func (a Account) Check(o Options) strict.Mistakes {
	var mistakes strict.Mistakes
	c := checker{Options: o, mistakes: &mistakes}
	c.tags(reflect.ValueOf(&a).Elem(), "")
	c.callback(a.CallbackURL, "callback_url")
	return mistakes
}

// secret checks the secret of a token. Without a secret, requests with the token need no
// signature.
func (c *checker) secret(t Token, path string) {
	c.mistakes.AddIf(t.Secret != "" && strings.TrimSpace(t.Secret) == "", path+"secret", "expected a secret that is not only blanks")
}

// maxCallback is the largest length of a callback URL in bytes, as over the REST API.
const maxCallback = 2048

func (c *checker) callback(raw, path string) {
	if raw == "" {
		return
	}
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && !(u.Scheme == "http" && c.AllowHTTPCallback) ||
		len(raw) > maxCallback || u.Fragment != "" || strings.ContainsFunc(raw, isBlank) {
		c.mistakes.Add(path, "expected an https URL, got %q", clipValue(raw))
		return
	}
	c.guard(u.Scheme+"://"+u.Host+"/", path)
}

// guard checks that requests may reach an origin.
func (c *checker) guard(origin, path string) {
	if c.CheckURL == nil {
		return
	}
	if err := c.CheckURL(origin); err != nil {
		c.mistakes.Add(path, "expected a URL that may be reached: %s", err)
	}
}

// claim records a value that must be unique, or adds a mistake if another record of the document
// has the value.
func (c *checker) claim(kind, value, path string) {
	key := kind + " " + value
	firstPath, taken := c.claims[key]
	switch {
	case value == "":
	case taken:
		c.mistakes.Add(path, "already taken by %s", firstPath)
	default:
		c.claims[key] = path
	}
}

// earlierClaims adds mistakes for unique values of the document that a record of an earlier
// document has, unless d declares that record again.
func (c *checker) earlierClaims(part, d Document) {
	source := "an earlier inventory"
	if part.Owner() != d.Owner() {
		source = fmt.Sprintf("the document %q", part.Owner())
	}
	declared := IndexOf(d.Accounts)
	for _, old := range Omitted(part, d).Accounts {
		taken := func(kind, value string) {
			if path, claimed := c.claims[kind+" "+value]; claimed && value != "" {
				c.mistakes.Add(path, "already taken by account %q of %s", old.Name, source)
			}
		}
		for _, t := range old.Tokens {
			taken("token", t.Hash())
			taken("source", t.Source)
		}
		for _, r := range old.Relays.Geo {
			taken("prefix", r.Prefix)
		}
		for _, r := range old.Relays.VMN {
			taken("number", r.Number)
		}
		for _, s := range old.SIMs {
			taken("SIM", s.ICCID)
			taken("IMSI", s.IMSI)
			taken("MSISDN", s.MSISDN)
		}
		if old.SOAP != nil {
			taken("SOAP username", old.SOAP.Username)
		}
		i := declared.Find(old)
		imported := slices.IndexFunc(old.Locations, func(l Location) bool { return l.Imported })
		if i < 0 || imported < 0 {
			continue
		}
		for j, l := range d.Accounts[i].Locations {
			c.mistakes.AddIf(l.Imported, fmt.Sprintf("accounts[%d].locations[%d].imported", i, j),
				"expected one imported location, but an earlier inventory declared %q", old.Locations[imported].ID)
		}
	}
}

func clipValue(s string) string { return strict.Clip(s, 60) }
