package outbox

import (
	"slices"
	"strings"
)

// MaskTarget hides the parts of a URL that may be secret: the password, the values of the query and
// the fragment. A target that is not a URL, such as an address, is unchanged. MaskTarget does not
// parse the URL, because an invalid URL may contain secrets too.
func MaskTarget(target string) string {
	scheme, location, ok := strings.Cut(target, "://")
	if !ok {
		return target
	}
	location, fragment, _ := strings.Cut(location, "#")
	location, query, hasQuery := strings.Cut(location, "?")
	masked := scheme + "://" + maskUser(location)
	if hasQuery {
		masked += "?" + maskQuery(query, func(string) bool { return true })
	}
	if fragment != "" {
		masked += "#***"
	}
	return masked
}

// MaskPath hides the password and the path of a URL, with its query and fragment. A target that is
// not a URL is unchanged.
func MaskPath(target string) string {
	scheme, remaining, ok := strings.Cut(target, "://")
	if !ok {
		return target
	}
	authority := remaining
	if end := strings.IndexAny(remaining, "/?#"); end >= 0 {
		authority = remaining[:end]
	}
	return scheme + "://" + maskUser(authority) + "/…"
}

// SearchableTarget returns the part of a target that is stored unencrypted for searches: the host of
// a URL and its query, which may have the text of a message, without the values of parameters that
// are named like credentials. It omits the path and the user name, which may be secret.
func SearchableTarget(target string) string {
	scheme, location, ok := strings.Cut(target, "://")
	if !ok {
		return target
	}
	location, _, _ = strings.Cut(location, "#")
	location, query, hasQuery := strings.Cut(location, "?")
	host, _, _ := strings.Cut(location, "/")
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

func maskUser(location string) string {
	host, path, hasPath := strings.Cut(location, "/")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		user, _, hasPassword := strings.Cut(host[:i], ":")
		if hasPassword {
			user += ":***"
		}
		host = user + host[i:]
	}
	if hasPath {
		return host + "/" + path
	}
	return host
}

// maskQuery hides the values of the parameters for which hidden returns true, and parts without a
// name.
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
