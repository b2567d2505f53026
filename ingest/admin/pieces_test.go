package admin

import (
	"errors"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestPagesAreReadInPieces(t *testing.T) {
	for _, tc := range []struct {
		name                string
		limit, stored, size int
		short               int // the number of records after which a piece is short; 0 for none
		want                int
		largest             int // the records of the largest piece, at most
	}{
		{"as many as are asked for", 250, 1000, 100, 0, 250, maxPiece},
		{"all there are", 1000, 123, 100, 0, 123, maxPiece},
		{"none", 100, 0, 100, 0, 0, firstPiece},
		{"fewer than a piece", 3, 1000, 100, 0, 3, 3},
		{"until they are large", 1000, 1000, pageBytes/20 + 1, 0, 20, firstPiece},
		{"at least one piece", 1000, 1000, pageBytes, 0, firstPiece, firstPiece},
		{"until a piece is short", 1000, 1000, 100, 50, 50, maxPiece},
	} {
		t.Run(tc.name, func(t *testing.T) {
			passed, largest := 0, 0
			page, err := inPieces(tc.limit, func(*int) int { return tc.size }, func(n int) ([]int, bool, error) {
				largest = max(largest, n)
				if tc.short > 0 {
					n = min(n, tc.short-passed)
				}
				found := make([]int, min(n, tc.stored-passed))
				passed += len(found)
				return found, passed < tc.stored, nil
			})
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the number of records", len(page), tc.want)
			if largest > tc.largest {
				t.Errorf("a piece has %d records, want at most %d", largest, tc.largest)
			}
		})
	}
	down := errors.New("down")
	if _, err := inPieces(10, func(*int) int { return 1 }, func(int) ([]int, bool, error) { return nil, false, down }); !errors.Is(err, down) {
		t.Errorf("an error became %v", err)
	}
}
