package event

import "testing"

// IDs and cursors contain the first letter of a kind.
func TestKindsDifferInTheirFirstLetter(t *testing.T) {
	kinds := map[byte]Kind{}
	for _, k := range Kinds() {
		if otherKind, exists := kinds[k[0]]; exists {
			t.Errorf("%s and %s have the same first letter", k, otherKind)
		}
		kinds[k[0]] = k
	}
	if len(kinds) != 4 {
		t.Errorf("%d kinds, want 4", len(kinds))
	}
}
