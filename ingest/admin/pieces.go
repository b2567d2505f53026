package admin

import "time"

// The number of records of the first piece of a page, and the largest number of a piece.
const (
	firstPiece = 10
	maxPiece   = 100
)

// inPieces reads a page of records in pieces, until it has limit records or about pageBytes, or
// has taken maxSearchTime. read returns the next n records and whether there are more; fewer than
// n end the page. size returns the memory of a record, in bytes.
func inPieces[T any](limit int, size func(*T) int, read func(n int) (found []T, hasMore bool, err error)) (page []T, err error) {
	began, bytes := time.Now(), 0
	for n := firstPiece; ; {
		n = min(n, limit-len(page))
		found, hasMore, err := read(n)
		if err != nil {
			return nil, err
		}
		for i := range found {
			bytes += size(&found[i])
		}
		page = append(page, found...)
		if !hasMore || len(found) < n || len(page) == limit || bytes >= pageBytes || time.Since(began) >= maxSearchTime {
			return page, nil
		}
		average := bytes/len(page) + 1
		n = max(1, min(maxPiece, (pageBytes-bytes)/average))
	}
}
