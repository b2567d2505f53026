package relay

import "math"

// MaxPerPage is the largest number of records on a page of a list.
const MaxPerPage = 500

// Page is a requested page of a list. Numbers start at 1.
type Page struct {
	Number  int
	PerPage int
}

// Offset returns the index of the page's first record, at most math.MaxInt.
func (p Page) Offset() int {
	skippedPages, perPage := max(0, p.Number-1), max(1, p.PerPage)
	if skippedPages > math.MaxInt/perPage {
		return math.MaxInt
	}
	return skippedPages * perPage
}

// Pages returns the number of pages of a list of total records, at least 1.
func (p Page) Pages(total int) int { return max(1, (total-1)/max(1, p.PerPage)+1) }
