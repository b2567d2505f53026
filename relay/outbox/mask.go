package outbox

import (
	"slices"
	"strings"
)

// MaskTarget hides what can be a secret in a URL: the password, the values of the
// query and the fragment. Names and order stay. Anything else, an address for
// example, is shown as it is. It works on the text, because a URL that does not
// parse holds secrets too.
func MaskTarget(target string) string {
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok {
		return target
	}
	rest, fragment, hasFragment := strings.Cut(rest, "#")
	rest, query, hasQuery := strings.Cut(rest, "?")
	out := scheme + "://" + maskUser(rest)
	if hasQuery {
		out += "?" + maskQuery(query, func(string) bool { return true })
	}
	if hasFragment && fragment != "" {
		out += "#***"
	}
	return out
}

// MaskPath hides of a URL the password, the path and what follows it. Anything else is
// returned as it is.
func MaskPath(target string) string {
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok {
		return target
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	return scheme + "://" + maskUser(authority) + "/…"
}

// SearchableTarget returns what of a target is kept in plain text for searches: of a URL the
// host and the query, because the text of a message may be there, but for the values of
// parameters that are named like credentials. A path may be a secret, and so may a user name.
func SearchableTarget(target string) string {
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok {
		return target
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, query, hasQuery := strings.Cut(rest, "?")
	host, _, _ := strings.Cut(rest, "/")
	searchable := scheme + "://" + host[strings.LastIndexByte(host, '@')+1:]
	if !hasQuery {
		return searchable
	}
	credentialNames := []string{"auth", "cred", "key", "pass", "pwd", "secret", "sig", "token"}
	return searchable + "?" + maskQuery(query, func(name string) bool {
		name = strings.ToLower(name)
		return slices.ContainsFunc(credentialNames, func(part string) bool { return strings.Contains(name, part) })
	})
}

// maskUser hides the password before the host of a URL without its scheme.
func maskUser(rest string) string {
	host, path, hasPath := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		user, _, hasPassword := strings.Cut(host[:at], ":")
		if hasPassword {
			user += ":***"
		}
		host = user + host[at:]
	}
	if hasPath {
		return host + "/" + path
	}
	return host
}

// maskQuery hides the values of a query whose names hidden selects; a part without a name
// is a value, and hidden.
func maskQuery(query string, hidden func(name string) bool) string {
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, _, hasName := strings.Cut(part, "=")
		switch {
		case hasName && !hidden(name):
		case hasName:
			parts[i] = name + "=***"
		case part != "":
			parts[i] = "***"
		}
	}
	return strings.Join(parts, "&")
}
