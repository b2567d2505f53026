package guard

import (
	"net/url"
	"strings"
)

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
