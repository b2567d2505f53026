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
		shortAfter          int // the number of records after which a piece is short; 0 for none
		want                int
		maxPiece            int // the maximum number of records in a piece
	}{
		{"limited by the number of records", 250, 1000, 100, 0, 250, maxPiece},
		{"fewer records than the limit", 1000, 123, 100, 0, 123, maxPiece},
		{"no records", 100, 0, 100, 0, 0, firstPiece},
		{"a limit below a piece", 3, 1000, 100, 0, 3, 3},
		{"limited by size", 1000, 1000, pageBytes/20 + 1, 0, 20, firstPiece},
		{"a first piece above the size limit", 1000, 1000, pageBytes, 0, firstPiece, firstPiece},
		{"a short piece", 1000, 1000, 100, 50, 50, maxPiece},
	} {
		t.Run(tc.name, func(t *testing.T) {
			count, largest := 0, 0
			page, err := readInPieces(tc.limit, func(*int) int { return tc.size }, func(n int) ([]int, bool, error) {
				largest = max(largest, n)
				if tc.shortAfter > 0 {
					n = min(n, tc.shortAfter-count)
				}
				found := make([]int, min(n, tc.stored-count))
				count += len(found)
				return found, count < tc.stored, nil
			})
			relaytest.NoError(t, err)
			relaytest.Equal(t, "the number of records", len(page), tc.want)
			if largest > tc.maxPiece {
				t.Errorf("records in the largest piece = %d, want at most %d", largest, tc.maxPiece)
			}
		})
	}
	errDown := errors.New("down")
	if _, err := readInPieces(10, func(*int) int { return 1 }, func(int) ([]int, bool, error) { return nil, false, errDown }); !errors.Is(err, errDown) {
		t.Errorf("error = %v, want %v", err, errDown)
	}
}
