package relay

import (
	"fmt"
	"net/mail"
	"strings"
)

// maxAddress is the largest length of an e-mail address, in bytes (RFC 5321, 4.5.3.1.3).
const maxAddress = 254

// CheckAddress returns an error unless s is a bare e-mail address in printable ASCII, without blanks:
// no character can end a header line or an SMTP command.
func CheckAddress(s string) error {
	parsed, err := mail.ParseAddress(s)
	invalid := func(c rune) bool { return c <= ' ' || c > '~' }
	if err != nil || parsed.Name != "" || parsed.Address != s || strings.ContainsFunc(s, invalid) || len(s) > maxAddress {
		return fmt.Errorf("%.80q is not an e-mail address", s)
	}
	return nil
}
