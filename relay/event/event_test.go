package event

import "testing"

// Ids and cursors contain the first letter of a kind.
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
