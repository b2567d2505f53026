package outbox

import "strings"

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
		out += "?" + maskQuery(query)
	}
	if hasFragment && fragment != "" {
		out += "#***"
	}
	return out
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

// maskQuery hides every value of a query; a part without a name is a value.
func maskQuery(query string) string {
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, _, hasName := strings.Cut(part, "=")
		switch {
		case hasName:
			parts[i] = name + "=***"
		case part != "":
			parts[i] = "***"
		}
	}
	return strings.Join(parts, "&")
}
