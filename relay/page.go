package relay

// MaxPerPage is the most records a page of any list holds.
const MaxPerPage = 500

// Page is a page of a list that was asked for; numbers start at 1.
type Page struct {
	Number  int
	PerPage int
}

// Offset returns the index of the page's first record.
func (p Page) Offset() int { return (p.Number - 1) * p.PerPage }

// Pages returns how many pages a list of total records has, at least 1.
func (p Page) Pages(total int) int {
	return max(1, (total+p.PerPage-1)/p.PerPage)
}
