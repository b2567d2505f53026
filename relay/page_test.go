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
		{"the first", Page{1, 50}, 101, 0, 3},
		{"the third", Page{3, 50}, 101, 100, 3},
		{"a list that fills its pages", Page{2, 50}, 100, 50, 2},
		{"an empty list has one page", Page{1, 50}, 0, 0, 1},
		{"a page of nothing", Page{3, 0}, 10, 2, 10},
		{"no page at all", Page{}, 1, 0, 1},
		{"the last there can be", Page{math.MaxInt, 500}, math.MaxInt, math.MaxInt, math.MaxInt/500 + 1},
		{"before the first", Page{-5, 10}, 5, 0, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if o, p := tc.page.Offset(), tc.page.Pages(tc.total); o != tc.offset || p != tc.pages {
				t.Errorf("offset %d, %d pages; want %d, %d", o, p, tc.offset, tc.pages)
			}
		})
	}
}
