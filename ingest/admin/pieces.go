package admin

import "time"

// The records that are read at once for a page: at first, and at most.
const (
	firstPiece = 10
	maxPiece   = 100
)

// inPieces reads a page of records, in pieces, until it has limit of them, has taken
// searchTime or has about pageBytes. read returns up to n more records and whether there
// are more behind; a shorter piece ends the page too. size is the memory of a record, in
// bytes.
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
		if !hasMore || len(found) < n || len(page) == limit || bytes >= pageBytes || time.Since(began) >= searchTime {
			return page, nil
		}
		average := bytes/len(page) + 1
		n = max(1, min(maxPiece, (pageBytes-bytes)/average))
	}
}
