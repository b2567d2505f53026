package cdr

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
)

// useLines reads CSV whose header has the names of UseHeader, in any order. What
// Inert made of a cell is undone: a file that was handed out may be posted. After
// a line that is broken it goes on with the next.
func useLines(r *records[Use]) {
	lines := csv.NewReader(bytes.NewReader(r.body))
	lines.FieldsPerRecord, lines.ReuseRecord = -1, true
	head, err := lines.Read()
	places, ok := columns(head)
	if err != nil || !ok {
		r.fail(reject("csv", "header", 0, "want "+strings.Join(UseHeader(), ",")))
		return
	}
	cells := make([]string, len(places))
	for {
		at := int(lines.InputOffset())
		row, err := lines.Read()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			r.fail(reject("csv", "line", at, "is no CSV"))
			continue
		case len(row) != len(places):
			r.fail(reject("csv", "line", at, "has "+strconv.Itoa(len(row))+" columns, want 6"))
			continue
		}
		for i, place := range places {
			cells[i] = original(strings.TrimSpace(row[place]))
		}
		r.add(use("csv", cells, at))
	}
}

// columns returns where each name of UseHeader stands in a header that has them
// all once and no other.
func columns(head []string) (places []int, ok bool) {
	for i := range head {
		head[i] = strings.ToLower(strings.TrimSpace(head[i]))
	}
	for _, name := range UseHeader() {
		place := slices.Index(head, name)
		if place < 0 {
			return nil, false
		}
		places = append(places, place)
	}
	return places, len(head) == len(places)
}
