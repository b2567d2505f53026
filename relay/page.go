package relay

import "math"

// MaxPerPage is the most records a page of any list holds.
const MaxPerPage = 500

// Page is a page of a list that was requested; numbers start at 1.
type Page struct {
	Number  int
	PerPage int
}

// Offset returns the index of the page's first record. A page beyond what an
// int can count begins at the end of every list.
func (p Page) Offset() int {
	skipped, per := max(0, p.Number-1), max(1, p.PerPage)
	if skipped > math.MaxInt/per {
		return math.MaxInt
	}
	return skipped * per
}

// Pages returns how many pages a list of total records has, at least 1.
func (p Page) Pages(total int) int {
	per := max(1, p.PerPage)
	pages := total / per
	if total%per > 0 {
		pages++
	}
	return max(1, pages)
}
