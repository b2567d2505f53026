package guard

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// maxURL is the longest URL accepted, in bytes; common servers refuse longer
// request lines.
const maxURL = 8 << 10

// CheckURL reports whether a URL may be saved as a target. It refuses an invalid URL, a
// scheme other than http and https, a literal address that is not public, names of the local
// host, and addresses in unusual spellings (2130706433, 0177.0.0.1, 0x7f.1, 127.1, a zone),
// public or not: such forms are never written by accident. It accepts user information, which
// endpoints with Basic authentication need; Redact masks it.
//
// A name is not resolved here: its addresses are checked at every dial. Placeholders
// must be replaced before, because they look like invalid escapes. Errors never contain
// the URL, which may contain secrets.
func (g *Guard) CheckURL(raw string) error {
	u, err := parseURL(raw)
	if err != nil {
		return err
	}
	if err := checkPort(u.Port()); err != nil {
		return err
	}
	host := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		return g.checkIPv6(host)
	}
	return g.checkName(host)
}

func parseURL(raw string) (*url.URL, error) {
	if len(raw) > maxURL {
		return nil, fmt.Errorf("is longer than %d bytes", maxURL)
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, errors.New("is not a valid URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("must begin with http:// or https://")
	case u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("has no host")
	}
	return u, nil
}

func checkPort(port string) error {
	if port == "" {
		return nil
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("has a port outside 1 to 65535")
	}
	return nil
}

func (g *Guard) checkIPv6(host string) error {
	addr, err := netip.ParseAddr(host)
	switch {
	case err != nil || !addr.Is6():
		return errors.New("has no valid IPv6 address between the brackets")
	case addr.Zone() != "":
		return errors.New("has an address with a zone")
	}
	return g.Check(addr)
}

func (g *Guard) checkName(host string) error {
	name, err := canonical(host)
	if err != nil {
		return err
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		return g.Check(addr)
	}
	labels := strings.Split(name, ".")
	switch tail := labels[len(labels)-1]; {
	case isNumber(tail):
		return errors.New("has an address in an unusual spelling; write four decimal numbers")
	case isLocal(name) && !g.allowsLoopback():
		return fmt.Errorf("host %s is this machine", name)
	}
	return nil
}

// canonical returns the host as net/http requests it: full-width digits and dots become
// ASCII before they are checked.
func canonical(host string) (string, error) {
	name := host
	if !isASCII(host) {
		var err error
		if name, err = idna.Lookup.ToASCII(host); err != nil {
			return "", errors.New("has no valid host name")
		}
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if name == "" || len(name) > 253 || strings.Contains(name, "..") || strings.HasPrefix(name, ".") || strings.ContainsFunc(name, notHostByte) {
		return "", errors.New("has no valid host name")
	}
	return name, nil
}

func notHostByte(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_')
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}

// isNumber reports whether a last label is a number, with which resolvers parse the
// whole host as an IPv4 address (inet_aton). No top-level domain is a number.
func isNumber(label string) bool {
	digits := "0123456789"
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		label, digits = hex, "0123456789abcdef"
	}
	return strings.Trim(label, digits) == ""
}

func isLocal(name string) bool {
	switch name {
	case "localhost", "localhost.localdomain", "localhost6", "localhost6.localdomain6", "ip6-localhost", "ip6-loopback":
		return true
	}
	return strings.HasSuffix(name, ".localhost")
}

func (g *Guard) allowsLoopback() bool {
	return g.allowed(netip.AddrFrom4([4]byte{127, 0, 0, 1})) || g.allowed(netip.IPv6Loopback())
}
