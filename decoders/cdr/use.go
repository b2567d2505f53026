package cdr

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/decimal"
	"github.com/penstock/penstock/decoders/iso8601"
)

// Use is a record of usage of a SIM: a data session, a message or a call.
type Use struct {
	// ID is the operator's identifier of the record.
	ID    string
	ICCID string
	// Start is UTC, to the microsecond.
	Start time.Time
	Type  string // one of Types
	Bytes int64
	// Duration is in seconds.
	Duration int64
}

// Types returns the types of use.
func Types() []string { return []string{"data", "sms", "voice"} }

// UseHeader returns the names of the fields of a Use, which are the header of a CSV.
func UseHeader() []string { return []string{"id", "iccid", "start_time", "type", "bytes", "duration"} }

const (
	// maxBytes is a tebibyte, so that the sum of millions of records does not overflow.
	maxBytes = 1 << 40
	maxICCID = 32
)

// Row returns the fields in the order of UseHeader. No cell is a formula of spreadsheets.
func (u Use) Row() []string {
	return []string{
		Inert(u.ID), Inert(u.ICCID), u.Start.UTC().Format("2006-01-02T15:04:05.999999Z07:00"), u.Type,
		strconv.FormatInt(u.Bytes, 10), strconv.FormatInt(u.Duration, 10),
	}
}

// Inert returns a CSV cell, with an apostrophe before a text that a spreadsheet would run as a
// formula. A formula that begins with apostrophes gets another apostrophe, so that
// restoreFormula can reverse Inert.
func Inert(cell string) string {
	if isFormula(cell) {
		return "'" + cell
	}
	return cell
}

// restoreFormula reverses Inert.
func restoreFormula(cell string) string {
	if formula, quoted := strings.CutPrefix(cell, "'"); quoted && isFormula(formula) {
		return formula
	}
	return cell
}

// isFormula reports whether a cell begins like a formula after any apostrophes.
func isFormula(cell string) bool {
	cell = strings.TrimLeft(cell, "'")
	return cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0]))
}

// UsageSource returns the format of a post of usage records: json or csv.
func UsageSource(body []byte) string {
	if isJSON(trimBody(body)) {
		return "json"
	}
	return "csv"
}

// ParseUsage parses the records of SIM usage in a post. The notes are about fields that are not
// used, and the errors, at most 20, about invalid records. The valid records are returned in
// any case.
func ParseUsage(body []byte) ([]Use, decoders.Notes, []error) {
	return read(trimBody(body), parseUseObject, parseUseLines)
}

func parseUseObject(raw json.RawMessage, offset int, notes *decoders.Notes) (Use, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return Use{}, newError("json", "record", offset, "is not an object")
	}
	r := fieldReader{fields: fields, offset: offset}
	header := UseHeader()
	noteUnknown(notes, fields, offset, header)
	cells := make([]string, len(header))
	for i, name := range header {
		for column, value := range fields { // names may be in capitals
			if fields[name] == nil && strings.EqualFold(column, name) {
				fields[name] = value
			}
		}
		cells[i] = r.text(name)
	}
	if r.err != nil {
		return Use{}, r.err
	}
	return parseUse("json", cells, offset)
}

// parseUse parses the cells of a record in the order of UseHeader.
func parseUse(format string, cells []string, offset int) (Use, error) {
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	u := Use{ID: strings.TrimSpace(strings.ToValidUTF8(cells[0], "")), ICCID: cells[1], Type: cells[3]}
	start, ok := iso8601.Parse(cells[2])
	u.Start = start.Truncate(time.Microsecond)
	const alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	switch {
	case u.ID == "":
		return u, newError(format, "id", offset, "is missing")
	case len(u.ID) > maxText:
		return u, newError(format, "id", offset, "is longer than 255 bytes")
	case u.ICCID == "" || len(u.ICCID) > maxICCID || strings.Trim(u.ICCID, alphanumeric) != "":
		return u, newError(format, "iccid", offset, "must be 1 to 32 digits or letters")
	case cells[2] == "":
		return u, newError(format, "start_time", offset, "is missing")
	case !ok:
		return u, newError(format, "start_time", offset, wantTime)
	case !isPlausible(u.Start):
		return u, impossibleError{newError(format, "start_time", offset, "lies outside 1970 to 2200")}
	case !slices.Contains(Types(), u.Type):
		return u, newError(format, "type", offset, "must be data, sms or voice")
	}
	const wantBytes = "must be a whole number from 0 to 2^40"
	if u.Bytes, ok = parseAmount(cells[4]); !ok {
		return u, newError(format, "bytes", offset, wantBytes)
	}
	if u.Duration, ok = parseAmount(cells[5]); !ok {
		return u, newError(format, "duration", offset, wantWholeSeconds)
	}
	switch {
	case u.Bytes < 0 || u.Bytes > maxBytes:
		return u, impossibleError{newError(format, "bytes", offset, wantBytes)}
	case u.Duration < 0 || u.Duration > maxSeconds:
		return u, impossibleError{newError(format, "duration", offset, wantSeconds)}
	}
	return u, nil
}

// parseAmount parses a whole number. "" means 0, and a number beyond 64 bits the nearest int64.
func parseAmount(text string) (int64, bool) {
	if text == "" {
		return 0, true
	}
	n, err := decimal.PlainInt(text)
	return n, err == nil || errors.Is(err, strconv.ErrRange)
}

// parseUseLines parses CSV whose header has the names of UseHeader in any order. It reverses Inert,
// because a file that the gateway has exported may be posted. It continues after an invalid
// line.
func parseUseLines(r *records[Use]) {
	lines := csv.NewReader(bytes.NewReader(r.body))
	lines.FieldsPerRecord, lines.ReuseRecord = -1, true
	header, err := lines.Read()
	// The header must have each name of UseHeader once and no other name.
	for i := range header {
		header[i] = strings.ToLower(strings.TrimSpace(header[i]))
	}
	var columns []int
	for _, name := range UseHeader() {
		columns = append(columns, slices.Index(header, name))
	}
	if err != nil || len(header) != len(columns) || slices.Contains(columns, -1) {
		r.fail(newError("csv", "header", 0, "must be "+strings.Join(UseHeader(), ",")))
		return
	}
	cells := make([]string, len(columns))
	for {
		offset := int(lines.InputOffset())
		row, err := lines.Read()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			r.fail(newError("csv", "line", offset, "is not valid CSV"))
			continue
		case len(row) != len(columns):
			r.fail(newError("csv", "line", offset, "has "+strconv.Itoa(len(row))+" columns instead of 6"))
			continue
		}
		for i, column := range columns {
			cells[i] = restoreFormula(strings.TrimSpace(row[column]))
		}
		r.add(parseUse("csv", cells, offset))
	}
}
