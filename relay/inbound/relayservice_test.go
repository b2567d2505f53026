package inbound

import (
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestPatterns(t *testing.T) {
	for name, tc := range map[string]struct {
		pattern, number string
		want            bool
	}{
		"the same":                        {"4478", "4478", true},
		"the beginning is not the whole":  {"447", "4478", false},
		"an asterisk at the end":          {"447*", "4478", true},
		"an asterisk may stand for none":  {"4478*", "4478", true},
		"an asterisk alone":               {"*", "4478", true},
		"an asterisk in front":            {"*78", "4478", true},
		"the end is not there":            {"*79", "4478", false},
		"in the middle":                   {"4*8", "4478", true},
		"two of them":                     {"4*7*", "4478", true},
		"twice the same digits":           {"44*44", "44", false},
		"a middle that is not there":      {"4*9*8", "4478", false},
		"asterisks next to one another":   {"4**8", "4478", true},
		"the last part wants its own end": {"*4*4", "4", false},
	} {
		t.Run(name, func(t *testing.T) {
			relaytest.Equal(t, "whether the number fits", matchesPattern(tc.pattern, tc.number), tc.want)
		})
	}
}
