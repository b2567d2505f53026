package admin

import "time"

// The number of records in the first piece of a page, and the maximum number in a piece.
const (
	firstPiece = 10
	maxPiece   = 100
)

// readInPieces reads a page of records in pieces until the page has limit records or about
// pageBytes, or maxSearchTime has passed. read returns the next n records and whether there are
// more; the page ends if read returns fewer than n. size returns the size of a record, in bytes.
func readInPieces[T any](limit int, size func(*T) int, read func(n int) (found []T, hasMore bool, err error)) (page []T, err error) {
	start, bytes := time.Now(), 0
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
		if !hasMore || len(found) < n || len(page) == limit || bytes >= pageBytes || time.Since(start) >= maxSearchTime {
			return page, nil
		}
		average := bytes/len(page) + 1
		n = max(1, min(maxPiece, (pageBytes-bytes)/average))
	}
}
