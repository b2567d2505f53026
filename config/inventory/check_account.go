package inventory

import (
	"cmp"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"unicode"

	"github.com/penstock/penstock/config/strict"
)

func (c *checker) token(t *Token, at string) {
	if !c.mistakes.Has(at + "token") {
		c.claim("token", t.Hash(), at+"token")
	}
	c.secret(t.Secret, at)
	c.claim("source", t.Source, at+"source")
}

// Check returns what is wrong with a token by itself.
func (t Token) Check() strict.Mistakes {
	var mistakes strict.Mistakes
	c := checker{mistakes: &mistakes, kinds: kinds(), plans: map[reflect.Type][]plan{}}
	c.fields(reflect.ValueOf(t), "")
	c.secret(t.Secret, "")
	return mistakes
}

// Check returns what is wrong with the settings of an account by themselves.
func (a Account) Check(o Options) strict.Mistakes {
	var mistakes strict.Mistakes
	c := checker{Options: o, mistakes: &mistakes, kinds: kinds(), plans: map[reflect.Type][]plan{}}
	c.fields(reflect.ValueOf(&a).Elem(), "")
	c.callback(a.CallbackURL, "callback_url")
	return mistakes
}

// secret checks the secret of a token; an empty one means that its requests are not
// signed.
func (c *checker) secret(secret, at string) {
	c.mistakes.AddIf(secret != "" && strings.TrimSpace(secret) == "", at+"secret", "expected a secret that is not only blanks")
}

func (c *checker) login(s *SOAP, at string) {
	if s == nil {
		return
	}
	c.claim("SOAP username", s.Username, at+"username")
	c.mistakes.AddIf(strings.TrimSpace(s.Password) == "", at+"password", "expected a password")
}

// maxCallback is how long a callback's URL may be, in bytes, as over REST.
const maxCallback = 2048

func (c *checker) callback(raw, path string) {
	if raw == "" {
		return
	}
	u, err := url.Parse(raw)
	blank := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && !(u.Scheme == "http" && c.AllowHTTPCallback) ||
		len(raw) > maxCallback || u.Fragment != "" || strings.ContainsFunc(raw, blank) {
		c.mistakes.Add(path, "expected an https URL, got %q", clipValue(raw))
		return
	}
	c.guard(u.Scheme+"://"+u.Host+"/", path)
}

// guard asks the one who knows what requests may reach.
func (c *checker) guard(origin, path string) {
	if c.CheckURL == nil {
		return
	}
	if err := c.CheckURL(origin); err != nil {
		c.mistakes.Add(path, "expected a URL that may be reached: %s", err)
	}
}

func (c *checker) sim(s *SIM, at string) {
	c.claim("SIM", s.ICCID, at+"iccid")
	c.claim("IMSI", s.IMSI, at+"imsi")
	c.claim("MSISDN", s.MSISDN, at+"msisdn")
	s.CurrentState = cmp.Or(s.CurrentState, "pending")
}

func (c *checker) locations(a *Account, at string) {
	imported := ""
	for i, l := range a.Locations {
		path := fmt.Sprintf("%slocations[%d].", at, i)
		c.claim(at+"location", l.ID, path+"id")
		if !l.Imported {
			continue
		}
		c.mistakes.AddIf(imported != "", path+"imported", "expected one imported location, the first is %s", imported)
		imported = path[:len(path)-1]
	}
}

func (c *checker) trunks(a *Account, at string) {
	for i, trunk := range a.SIP.Trunks {
		path := fmt.Sprintf("%ssip.trunks[%d].source_ips", at, i)
		c.mistakes.AddIf(len(trunk.SourceIPs) == 0, path, "expected at least one address")
	}
}

func (c *checker) ledgers(a *Account, at string) {
	for i, l := range a.Ledgers {
		path := fmt.Sprintf("%sledgers[%d].", at, i)
		c.claim(at+"ledger", l.ID, path+"id")
		c.mistakes.AddIf(l.Expiry < 0, path+"expiry", "expected 0s (never) or more")
	}
}
