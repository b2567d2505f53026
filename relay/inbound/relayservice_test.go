package inbound

import (
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestPatternsMatchNumbers(t *testing.T) {
	for name, tc := range map[string]struct {
		pattern, number string
		want            bool
	}{
		"the same digits":                      {"4478", "4478", true},
		"only the beginning of the number":     {"447", "4478", false},
		"an asterisk at the end":               {"447*", "4478", true},
		"an asterisk matches zero digits":      {"4478*", "4478", true},
		"an asterisk alone":                    {"*", "4478", true},
		"an asterisk in front":                 {"*78", "4478", true},
		"an asterisk in front and another end": {"*79", "4478", false},
		"an asterisk in the middle":            {"4*8", "4478", true},
		"two asterisks":                        {"4*7*", "4478", true},
		"a number shorter than the pattern":    {"44*44", "44", false},
		"another digit between asterisks":      {"4*9*8", "4478", false},
		"adjacent asterisks":                   {"4**8", "4478", true},
		"one digit for two parts":              {"*4*4", "4", false},
	} {
		t.Run(name, func(t *testing.T) {
			relaytest.Equal(t, "whether the number matches", matchesPattern(tc.pattern, tc.number), tc.want)
		})
	}
}
