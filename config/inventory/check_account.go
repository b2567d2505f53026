package inventory

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"unicode"
)

// minToken is the least number of characters of a token: one that is shorter can be
// guessed.
const minToken = 16

func (c *checker) token(t *Token, at string) {
	if t.Token == "" || strings.ContainsFunc(t.Token, blank) {
		c.mistakes.Add(at+"token", "expected a token without blanks")
	} else if n := len([]rune(t.Token)); n < minToken && !c.mistakes.Has(at+"token") {
		c.mistakes.Add(at+"token", "expected at least %d characters, got %d", minToken, n)
	} else if !c.mistakes.Has(at + "token") {
		c.claim("token", t.Hash(), at+"token")
	}
	scopes := []string{"messaging", "cellular", "iot", "ledger", "webhook", "carrier"}
	for i, s := range t.Scopes {
		c.oneOf(s, scopes, fmt.Sprintf("%sscopes[%d]", at, i))
	}
	if t.Source != "" {
		c.id(t.Source, at+"source")
		c.claim("source", t.Source, at+"source")
	}
}

// blank reports what no header or query can carry unharmed.
func blank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

func (c *checker) credentials(a *Account, at string) {
	if a.SOAP != nil {
		c.name(a.SOAP.Username, at+"soap.username")
		c.claim("SOAP username", a.SOAP.Username, at+"soap.username")
		if a.SOAP.Password == "" {
			c.mistakes.Add(at+"soap.password", "expected a password")
		}
	}
	for i, s := range a.WebhookSecrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, "whsec_"))
		if err != nil || !strings.HasPrefix(s, "whsec_") || len(key) < 24 || len(key) > 64 {
			c.mistakes.Add(fmt.Sprintf("%swebhook_secret[%d]", at, i), "expected whsec_ and the base64 of 24 to 64 bytes")
		}
	}
}

func (c *checker) callback(raw, path string) {
	if raw == "" {
		return
	}
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && !(u.Scheme == "http" && c.AllowHTTPCallback) {
		c.mistakes.Add(path, "expected an https URL, got %q", clip(raw))
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
	c.digits(&s.ICCID, at+"iccid", 18, 22)
	c.claim("SIM", s.ICCID, at+"iccid")
	if s.IMSI != "" {
		c.digits(&s.IMSI, at+"imsi", 6, 15)
		c.claim("IMSI", s.IMSI, at+"imsi")
	}
	if s.MSISDN != "" {
		c.digits(&s.MSISDN, at+"msisdn", 7, 15)
		c.claim("MSISDN", s.MSISDN, at+"msisdn")
	}
	for _, code := range s.codes() {
		if v := *code.value; v != "" && (!allDigits(v) || len(v) < 4 || len(v) > 8) {
			c.mistakes.Add(at+code.name, "expected 4 to 8 digits")
		}
	}
	if s.CurrentState == "" {
		s.CurrentState = "pending"
	}
	c.oneOf(s.CurrentState, []string{"pending", "active", "suspended", "terminated"}, at+"current_state")
}

func (c *checker) locations(a *Account, at string) {
	imported := ""
	for i, l := range a.Locations {
		path := fmt.Sprintf("%slocations[%d].", at, i)
		c.id(l.ID, path+"id")
		c.name(l.Name, path+"name")
		c.claim(at+"location", l.ID, path+"id")
		if !l.Imported {
			continue
		}
		if imported != "" {
			c.mistakes.Add(path+"imported", "expected one imported location, the first is %s", imported)
		}
		imported = path[:len(path)-1]
	}
}

func (c *checker) trunks(a *Account, at string) {
	for i, trunk := range a.SIP.Trunks {
		path := fmt.Sprintf("%ssip.trunks[%d].source_ips", at, i)
		if len(trunk.SourceIPs) == 0 {
			c.mistakes.Add(path, "expected at least one address")
		}
		for j, ip := range trunk.SourceIPs {
			if _, err := netip.ParseAddr(ip); err != nil {
				c.mistakes.Add(fmt.Sprintf("%s[%d]", path, j), "expected an IP address, got %q", clip(ip))
			}
		}
	}
}

func (c *checker) ledgers(a *Account, at string) {
	for i, l := range a.Ledgers {
		path := fmt.Sprintf("%sledgers[%d].", at, i)
		c.id(l.ID, path+"id")
		c.name(l.Name, path+"name")
		c.claim(at+"ledger", l.ID, path+"id")
		if l.Claims < 0 {
			c.mistakes.Add(path+"claims", "expected 0 (no limit) or more, got %d", l.Claims)
		}
		if l.Expiry < 0 {
			c.mistakes.Add(path+"expiry", "expected 0s (never) or more")
		}
	}
}
