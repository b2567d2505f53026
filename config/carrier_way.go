package config

import (
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/penstock/penstock/config/strict"
)

// deriveWay fills in how fast messages go over a carrier.
func (c *Carrier) deriveWay() {
	if c.Type == Simulator && c.Window > 0 {
		c.Window = max(c.Window, 1000)
	}
}

// The values of Carrier.Originators.
const (
	anyText      = "text"         // all of the GSM alphabet
	alphanumeric = "alphanumeric" // letters and digits
	numeric      = "numeric"
)

// AcceptsOriginator reports whether the carrier passes on an originator, as far as its
// settings say.
func (c *Carrier) AcceptsOriginator(originator string) bool {
	other := func(r rune) bool { return !unicode.IsLetter(r) && (r < '0' || r > '9') }
	switch c.Originators {
	case numeric:
		return strings.Trim(originator, "0123456789") == ""
	case alphanumeric:
		return !strings.ContainsFunc(originator, other)
	}
	return true
}

// validateWay checks a carrier's limits and rates.
func (c *Carrier) validateWay(m *strict.Mistakes, at string) {
	for _, p := range c.Prefixes {
		if p == "" || len(p) > 15 || strings.Trim(p, "0123456789") != "" {
			m.Add(at+"prefixes", "expected prefixes of 1 to 15 digits, got %q", p)
		}
	}
	if c.Originators != "" {
		oneOf(m, at+"originators", c.Originators, anyText, alphanumeric, numeric)
	}
	if c.Window < 1 || c.Window > 10_000 {
		m.Add(at+"window", "expected 1 to 10000, got %d", c.Window)
	}
	if c.PerSecond < 0 || c.PerSecond > 100_000 {
		m.Add(at+"per_second", "expected 0 to 100000, got %d", c.PerSecond)
	}
}

func (c *Carrier) validateName(m *strict.Mistakes, at string) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	if c.Name == "" || len(c.Name) > 40 || strings.Trim(c.Name, letters) != "" {
		m.Add(at+"name", "expected a name of 1 to 40 letters, digits, dots, dashes and underscores, got %q", c.Name)
	}
	if c.Name == Simulator && c.Type != Simulator {
		m.Add(at+"name", "expected another name than simulator, which stands for none")
	}
}

// foreign names settings of other types that are there.
func (c *Carrier) foreign(m *strict.Mistakes, at, kind string, values map[string]string) {
	for _, key := range []string{
		"addr", "system_id", "password", "system_type", "bind", "address_range", "tls", "ca_file", "alphabet", "url", "username", "smsc", "token",
	} {
		if values[key] != "" {
			m.Add(at+key, "expected nothing, because a carrier of the type %s has none", kind)
		}
	}
}

// ofSMPP are the settings that only SMPP has.
func (c *Carrier) ofSMPP() map[string]string {
	return map[string]string{
		"addr": c.Addr, "system_id": c.SystemID, "system_type": c.SystemType, "bind": c.Bind, "address_range": c.AddressRange,
		"tls": c.TLS, "ca_file": c.CAFile, "alphabet": c.Alphabet,
	}
}

func (c *Carrier) validateSimulator(m *strict.Mistakes, at string) {
	others := c.ofSMPP()
	others["password"], others["url"], others["username"], others["smsc"], others["token"] = c.Password, c.URL, c.Username, c.SMSC, c.Token
	if c.Name != Simulator {
		m.Add(at+"name", "expected none, or simulator, got %q", c.Name)
	}
	c.foreign(m, at, c.Type, others)
}

func (c *Carrier) validateKannel(m *strict.Mistakes, at string) {
	others := c.ofSMPP()
	others["token"] = c.Token
	c.foreign(m, at, c.Type, others)
	c.validateName(m, at)
	c.validateURL(m, at)
	asciiField(m, at+"username", c.Username, maxPassword)
	asciiField(m, at+"password", c.Password, maxPassword)
	asciiField(m, at+"smsc", c.SMSC, maxPassword)
}

func (c *Carrier) validateHTTP(m *strict.Mistakes, at string) {
	others := c.ofSMPP()
	others["password"], others["username"], others["smsc"] = c.Password, c.Username, c.SMSC
	c.foreign(m, at, c.Type, others)
	c.validateName(m, at)
	c.validateURL(m, at)
	asciiField(m, at+"token", c.Token, 4096)
}

// validateURL checks the URL of a carrier, which may hold a secret.
func (c *Carrier) validateURL(m *strict.Mistakes, at string) {
	u, err := url.Parse(c.URL)
	if err != nil || !web(u) || c.Type == Kannel && u.RawQuery != "" {
		m.Add(at+"url", "expected an http or https URL")
	}
	validateTimeout(m, at, c.AnswerTimeout)
}

func validateTimeout(m *strict.Mistakes, at string, timeout time.Duration) {
	if timeout < 100*time.Millisecond || timeout > 5*time.Minute {
		m.Add(at+"answer_timeout", "expected 100ms to 5m, got %q", timeout)
	}
}

// Sends reports whether messages can go over the carrier.
func (c *Carrier) Sends() bool {
	return c.Type != SMPP || slices.Contains([]string{Transceiver, Transmitter}, c.Bind)
}
