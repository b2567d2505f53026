package httpd

import (
	"time"

	"github.com/penstock/penstock/relay"
)

// Each returns the rendered records of a list. The result is never nil, which would be null in JSON.
func Each[A, B any](list []A, render func(A) B) []B {
	records := make([]B, len(list))
	for i, v := range list {
		records[i] = render(v)
	}
	return records
}

// OrNull returns a value for JSON; nil for the zero value, which becomes null.
func OrNull[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// TimeOrNull returns a time in UTC for JSON; nil for the zero time, which becomes null.
func TimeOrNull(t time.Time, layout string) *string {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC().Format(layout))
}

// PageOf returns a page of a complete list.
func PageOf[T any](p relay.Page, records []T) []T {
	start := min(p.Offset(), len(records))
	return records[start : start+min(p.PerPage, len(records)-start)]
}

// Pagination is the member meta.pagination of a list.
type Pagination struct {
	Total       int `json:"total"`
	Count       int `json:"count"`
	PerPage     int `json:"per_page"`
	CurrentPage int `json:"current_page"`
	TotalPages  int `json:"total_pages"`
}

// PaginationOf returns the Pagination of a page with count records of a list with total records.
func PaginationOf(p relay.Page, count, total int) Pagination {
	return Pagination{Total: total, Count: count, PerPage: p.PerPage, CurrentPage: p.Number, TotalPages: p.Pages(total)}
}
