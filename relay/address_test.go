package relay

import (
	"strings"
	"testing"
)

func TestCheckAddress(t *testing.T) {
	for address, ok := range map[string]bool{
		"ops@example.com": true, "a.b+c@example.org": true, "": false, "ops": false, "Ops <ops@example.com>": false, "<ops@example.com>": false,
		"ops@example.com\r\nBcc: x@example.com": false, "öps@example.com": false, "a b@example.com": false,
		strings.Repeat("a", 250) + "@example.com": false, "ops@example.com, x@example.com": false,
	} {
		if err := CheckAddress(address); (err == nil) != ok {
			t.Errorf("error for %q = %v, want valid %t", address, err, ok)
		}
	}
}
