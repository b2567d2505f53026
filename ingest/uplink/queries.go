package uplink

import (
	"net/url"
	"sync"
)

// queries remembers parsed queries: an integration posts all of its frames with the
// same one. Parsing it for each took 5 % of the memory that a frame allocates.
type queries struct {
	mu    sync.Mutex
	known map[string]url.Values
}

// Limits of what is remembered.
const (
	maxQueries    = 1000
	maxKnownQuery = 256 // bytes
)

// parse parses a query and ignores malformed parameters. The result is shared and must
// not be modified.
func (q *queries) parse(raw string) url.Values {
	if raw == "" {
		return nil
	}
	if len(raw) > maxKnownQuery {
		return parseQuery(raw)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if values, ok := q.known[raw]; ok {
		return values
	}
	if q.known == nil || len(q.known) >= maxQueries {
		q.known = make(map[string]url.Values)
	}
	values := parseQuery(raw)
	q.known[raw] = values
	return values
}

func parseQuery(raw string) url.Values {
	values, _ := url.ParseQuery(raw)
	return values
}
