package guard

import (
	"net/url"
	"strings"
)

// mask stands where something was left out.
const mask = "***"

// Redact is a URL as it may be shown: user information and the values of the
// query are masked, a fragment is left out. Of what does not parse nothing is
// shown.
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
	shown := u.String()
	if user {
		shown = strings.Replace(shown, "//", "//"+mask+"@", 1)
	}
	if query != "" {
		shown += "?" + maskValues(query)
	}
	return shown
}

// maskValues keeps the names and their order; a pair without "=" may be a
// secret as a whole.
func maskValues(query string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, _, found := strings.Cut(pair, "=")
		if found {
			pairs[i] = name + "=" + mask
		} else if pair != "" {
			pairs[i] = mask
		}
	}
	return strings.Join(pairs, "&")
}
