package sim

import (
	"net/url"
	"strings"
	"unicode"

	"github.com/penstock/penstock/relay"
)

// maxURL is how long a callback's URL may be, in bytes.
const maxURL = 2048

// checkCallback returns an error unless raw is a URL that can be called.
func checkCallback(raw string, allowHTTP bool) error {
	if raw == "" {
		return relay.Invalid("callback_url", "The callback url field is required.")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || len(raw) > maxURL || u.Hostname() == "" || u.Fragment != "" || strings.ContainsFunc(raw, blank):
		return relay.Invalid("callback_url", "The callback url must be a valid URL.")
	case u.Scheme == "https" || u.Scheme == "http" && allowHTTP:
		return nil
	}
	return relay.Invalid("callback_url", "The callback url must begin with https://.")
}

func blank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
