package inventory

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/penstock/penstock/config/strict"
)

// checker walks a decoded document, notes what is wrong and fills in defaults.
type checker struct {
	Options
	known    known // all that earlier inventories declared
	standing known // what stays beside the document
	mistakes *strict.Mistakes
	claims   map[string]string // what only one may have → the first place that took it
	kinds    map[string]kind
	plans    map[reflect.Type][]plan
	failed   error // of HasDecoder
}

func (c *checker) document(d *Document) {
	c.fields(reflect.ValueOf(d).Elem(), "")
	for i := range d.SensorTypes {
		c.sensorType(&d.SensorTypes[i], fmt.Sprintf("sensor_types[%d].", i))
		c.standing.types[d.SensorTypes[i].ID] = true
	}
	for i := range d.Networks {
		c.network(&d.Networks[i], fmt.Sprintf("networks[%d].", i))
	}
	for i := range d.Accounts {
		c.account(&d.Accounts[i], fmt.Sprintf("accounts[%d]", i))
	}
	for _, part := range c.Standing {
		c.claimsOf(part, *d)
	}
}

func (c *checker) sensorType(s *SensorType, at string) {
	c.claim("sensor type", s.ID, at+"id")
	c.mistakes.AddIf(s.ImperialSlope < 0, at+"imperial_slope", "expected a number above 0, got %g", s.ImperialSlope)
}

func (c *checker) network(n *Network, at string) {
	c.claim("network", n.Prefix, at+"prefix")
}

func (c *checker) account(a *Account, at string) {
	at += "."
	c.identity(a, at)
	for i := range a.Tokens {
		c.token(&a.Tokens[i], fmt.Sprintf("%stokens[%d].", at, i))
	}
	c.login(a.SOAP, at+"soap.")
	c.callback(a.CallbackURL, at+"callback_url")
	for i := range a.SIMs {
		c.sim(&a.SIMs[i], fmt.Sprintf("%ssims[%d].", at, i))
	}
	c.relays(a, at)
	c.locations(a, at)
	c.decoders(a, at)
	c.rules(a, at)
	c.trunks(a, at)
	c.ledgers(a, at)
}

func (c *checker) identity(a *Account, at string) {
	c.claim("account name", a.Name, at+"name")
	c.mistakes.AddIf(a.ID < 0, at+"id", "expected more than 0, got %d", a.ID)
	if a.ID == 0 {
		return
	}
	c.claim("account id", fmt.Sprint(a.ID), at+"id")
	if old, ok := c.known.accounts[a.Name]; ok && old.ID != 0 && old.ID != a.ID {
		c.mistakes.Add(at+"id", "expected %d, the id of the account of this name", old.ID)
	}
}

// claim takes a value for the place, or says who has it.
func (c *checker) claim(kind, value, path string) {
	key := kind + " " + value
	first, taken := c.claims[key]
	switch {
	case value == "":
	case taken:
		c.mistakes.Add(path, "already taken by %s", first)
	default:
		c.claims[key] = path
	}
}

// maxID bounds identifiers.
const maxID = 64

// id checks an identifier, which stands in paths and keys.
func (c *checker) id(s, path string) {
	if s == "" {
		c.mistakes.Add(path, "expected an id")
		return
	}
	if len(s) > maxID || strings.ContainsFunc(s, func(r rune) bool { return !idRune(r) }) {
		c.mistakes.Add(path, "expected 1 to %d letters, digits, dots, hyphens or underscores, got %q", maxID, clipValue(s))
	}
}

func idRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_'
}

func (c *checker) name(s, path string) {
	switch {
	case s == "":
		c.mistakes.Add(path, "expected a name")
	case len(s) > maxNameBytes || strings.ContainsFunc(s, unicode.IsControl):
		c.mistakes.Add(path, "expected one line of at most %d bytes, got %q", maxNameBytes, clipValue(s))
	}
}

func (c *checker) oneOf(s string, want []string, path string) {
	if !slices.Contains(want, s) {
		c.mistakes.Add(path, "expected %s, got %q", either(want), clipValue(s))
	}
}

// either writes a choice in words: a, b or c.
func either(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func allDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func clipValue(s string) string { return strict.Clip(s, 60) }
