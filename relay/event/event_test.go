package event

import "testing"

// The first letter of a kind stands in ids and cursors.
func TestKindsDifferInTheirFirstLetter(t *testing.T) {
	seen := map[byte]Kind{}
	for _, k := range Kinds() {
		if other, taken := seen[k[0]]; taken {
			t.Errorf("%s and %s", k, other)
		}
		seen[k[0]] = k
	}
	if len(seen) != 4 {
		t.Errorf("%d kinds", len(seen))
	}
}
