package relay

import (
	"fmt"
	"net/mail"
)

// maxAddress is the longest e-mail address, in bytes (RFC 5321, 4.5.3.1.3).
const maxAddress = 254

// CheckAddress returns an error unless s is a bare e-mail address that SMTP carries
// without extensions, with nothing that could end a header line or command.
func CheckAddress(s string) error {
	parsed, err := mail.ParseAddress(s)
	if err != nil || parsed.Name != "" || parsed.Address != s || !printableASCII(s) || len(s) > maxAddress {
		return fmt.Errorf("%.80q is not an e-mail address", s)
	}
	return nil
}

func printableASCII(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}
