package guard

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// maxURL is the longest URL accepted, in bytes; common servers refuse longer
// request lines.
const maxURL = 8 << 10

// CheckURL returns an error for a URL that must not be saved as a target: an invalid URL, a
// scheme other than http and https, a literal address that is neither public nor allowed, a name
// of the local host unless a loopback address is allowed, and an address in an unusual spelling
// (2130706433, 0177.0.0.1, 0x7f.1, 127.1, a zone), public or not: such forms are never written by
// accident. CheckURL accepts user information, which endpoints with Basic authentication need.
// Redact masks user information.
//
// A name is not resolved here: its addresses are checked at every dial. The caller replaces
// placeholders first, because they look like invalid escapes. Errors never contain the URL,
// which may contain secrets.
func (g *Guard) CheckURL(raw string) error {
	if len(raw) > maxURL {
		return fmt.Errorf("is longer than %d bytes", maxURL)
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return errors.New("is not a valid URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("must begin with http:// or https://")
	case u.Hostname() == "" || u.Opaque != "":
		return errors.New("has no host")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("has a port outside 1 to 65535")
		}
	}
	if !strings.HasPrefix(u.Host, "[") {
		return g.checkName(u.Hostname())
	}
	addr, err := netip.ParseAddr(u.Hostname())
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
	localNames := []string{"localhost", "localhost.localdomain", "localhost6", "localhost6.localdomain6", "ip6-localhost", "ip6-loopback"}
	isLocal := strings.HasSuffix(name, ".localhost") || slices.Contains(localNames, name)
	allowsLocal := g.allowed(netip.AddrFrom4([4]byte{127, 0, 0, 1})) || g.allowed(netip.IPv6Loopback())
	switch {
	case isNumber(labels[len(labels)-1]):
		return errors.New("has an address in an unusual spelling; write four decimal numbers")
	case isLocal && !allowsLocal:
		return fmt.Errorf("host %s is this machine", name)
	}
	return nil
}

// canonical returns the host as net/http requests it: full-width digits and dots become
// ASCII before they are checked.
func canonical(host string) (string, error) {
	name := host
	if strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) {
		var err error
		if name, err = idna.Lookup.ToASCII(host); err != nil {
			return "", errors.New("has no valid host name")
		}
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	invalid := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_')
	}
	if name == "" || len(name) > 253 || strings.Contains(name, "..") || strings.HasPrefix(name, ".") || strings.ContainsFunc(name, invalid) {
		return "", errors.New("has no valid host name")
	}
	return name, nil
}

// isNumber reports whether the last label of a host is a number. With such a label, resolvers
// parse the whole host as an IPv4 address (inet_aton). No top-level domain is a number.
func isNumber(label string) bool {
	digits := "0123456789"
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		label, digits = hex, "0123456789abcdef"
	}
	return strings.Trim(label, digits) == ""
}

// mask replaces secret parts.
const mask = "***"

// Redact returns a URL without secrets: user information and the values of the query
// are masked, and the fragment is removed. An invalid URL is not shown at all.
func Redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(unreadable URL)"
	}
	user := u.User != nil
	query := u.RawQuery
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	if u.Opaque != "" {
		u.Opaque = mask
	}
	redacted := u.String()
	if user {
		redacted = strings.Replace(redacted, "//", "//"+mask+"@", 1)
	}
	if query == "" {
		return redacted
	}
	pairs := strings.Split(query, "&") // the names and their order stay
	for i, pair := range pairs {
		name, _, found := strings.Cut(pair, "=")
		if found {
			pairs[i] = name + "=" + mask
		} else if pair != "" {
			pairs[i] = mask
		}
	}
	return redacted + "?" + strings.Join(pairs, "&")
}
