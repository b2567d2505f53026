package relay

import (
	"math"
	"testing"
)

func TestPages(t *testing.T) {
	for _, tc := range []struct {
		name                 string
		page                 Page
		total, offset, pages int
	}{
		{"the first page", Page{1, 50}, 101, 0, 3},
		{"the third page", Page{3, 50}, 101, 100, 3},
		{"a list of full pages", Page{2, 50}, 100, 50, 2},
		{"an empty list has one page", Page{1, 50}, 0, 0, 1},
		{"a page size of 0", Page{3, 0}, 10, 2, 10},
		{"the zero page", Page{}, 1, 0, 1},
		{"the largest numbers", Page{math.MaxInt, 500}, math.MaxInt, math.MaxInt, math.MaxInt/500 + 1},
		{"a negative page number", Page{-5, 10}, 5, 0, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if o, p := tc.page.Offset(), tc.page.Pages(tc.total); o != tc.offset || p != tc.pages {
				t.Errorf("offset = %d, pages = %d, want %d and %d", o, p, tc.offset, tc.pages)
			}
		})
	}
}
