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

// Use is the record of what a SIM used once: a session, a message, a call.
type Use struct {
	// ID is the operator's name of the record; two records with one id are one.
	ID    string
	ICCID string
	// Start is UTC, to the microsecond.
	Start time.Time
	Type  string // one of Types
	Bytes int64
	// Duration is in seconds.
	Duration int64
}

// Types lists what a SIM can use.
func Types() []string { return []string{"data", "sms", "voice"} }

// UseHeader names the fields of a Use, as the header of a CSV has them.
func UseHeader() []string { return []string{"id", "iccid", "start_time", "type", "bytes", "duration"} }

const (
	// maxBytes bounds one record: a tebibyte, so that millions can be added up.
	maxBytes = 1 << 40
	maxICCID = 32
)

// Row is the record in the order of UseHeader. A spreadsheet runs none of it.
func (u Use) Row() []string {
	return []string{
		Inert(u.ID), Inert(u.ICCID), u.Start.UTC().Format("2006-01-02T15:04:05.999999Z07:00"), u.Type,
		strconv.FormatInt(u.Bytes, 10), strconv.FormatInt(u.Duration, 10),
	}
}

// Inert is a cell of a CSV that a spreadsheet does not run as a formula: one that
// it would gets an apostrophe before it, and so does one that begins like that.
func Inert(cell string) string {
	if isFormula(cell) {
		return "'" + cell
	}
	return cell
}

// original is the cell that Inert was given.
func original(cell string) string {
	if formula, quoted := strings.CutPrefix(cell, "'"); quoted && isFormula(formula) {
		return formula
	}
	return cell
}

// isFormula reports whether a cell begins like a formula, behind any apostrophes.
func isFormula(cell string) bool {
	cell = strings.TrimLeft(cell, "'")
	return cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0]))
}

// UseSource names the form of a post: json or csv.
func UseSource(body []byte) string {
	if isJSON(stripped(body)) {
		return "json"
	}
	return "csv"
}

// ParseUses reads every record of what SIMs used of a post. Notes say what of the records
// was not used. Errors are of the records that cannot be read, at most 20; the others are
// returned.
func ParseUses(body []byte) ([]Use, decoders.Notes, []error) {
	return read(stripped(body), useObject, useLines)
}

func useObject(raw json.RawMessage, offset int, notes *decoders.Notes) (Use, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return Use{}, reject("json", "record", offset, "is not an object")
	}
	r := reading{fields: fields, offset: offset}
	header := UseHeader()
	noteUnknown(notes, fields, offset, header)
	cells := make([]string, len(header))
	for i, name := range header {
		if cells[i] = r.text(name); fields[name] == nil {
			cells[i] = r.folded(name)
		}
	}
	if r.err != nil {
		return Use{}, r.err
	}
	return use("json", cells, offset)
}

// folded is the text of a field whose name is in other letters, as "ICCID".
func (r *reading) folded(name string) string {
	for column, value := range r.fields {
		if strings.EqualFold(column, name) {
			return r.word(name, value)
		}
	}
	return ""
}

// use makes a record of its fields, in the order of UseHeader.
func use(format string, cells []string, offset int) (Use, error) {
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	u := Use{ID: strings.TrimSpace(strings.ToValidUTF8(cells[0], "")), ICCID: cells[1], Type: cells[3]}
	start, ok := iso8601.Parse(cells[2])
	u.Start = start.Truncate(time.Microsecond)
	const alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	switch {
	case u.ID == "":
		return u, reject(format, "id", offset, "is missing")
	case len(u.ID) > maxText:
		return u, reject(format, "id", offset, "is longer than 255 bytes")
	case u.ICCID == "" || len(u.ICCID) > maxICCID || strings.Trim(u.ICCID, alphanumeric) != "":
		return u, reject(format, "iccid", offset, "want 1 to 32 digits or letters")
	case cells[2] == "":
		return u, reject(format, "start_time", offset, "is missing")
	case !ok:
		return u, reject(format, "start_time", offset, wantTime)
	case !plausible(u.Start):
		return u, impossible{reject(format, "start_time", offset, "lies outside 1970 to 2200")}
	case !slices.Contains(Types(), u.Type):
		return u, reject(format, "type", offset, "want data, sms or voice")
	}
	const wantBytes = "want a whole number from 0 to 2^40"
	if u.Bytes, ok = amount(cells[4]); !ok {
		return u, reject(format, "bytes", offset, wantBytes)
	}
	if u.Duration, ok = amount(cells[5]); !ok {
		return u, reject(format, "duration", offset, "want a whole number of seconds")
	}
	switch {
	case u.Bytes < 0 || u.Bytes > maxBytes:
		return u, impossible{reject(format, "bytes", offset, wantBytes)}
	case u.Duration < 0 || u.Duration > maxSeconds:
		return u, impossible{reject(format, "duration", offset, wantSeconds)}
	}
	return u, nil
}

// amount reads a whole number; nothing is 0. One beyond 64 bits is the largest.
func amount(text string) (int64, bool) {
	if text == "" {
		return 0, true
	}
	n, err := decimal.Digits(text)
	return n, err == nil || errors.Is(err, strconv.ErrRange)
}

// useLines reads CSV whose header has the names of UseHeader, in any order. What Inert made
// of a cell is undone: a file that was handed out may be posted. After a line that is broken
// it continues with the next.
func useLines(r *records[Use]) {
	lines := csv.NewReader(bytes.NewReader(r.body))
	lines.FieldsPerRecord, lines.ReuseRecord = -1, true
	head, err := lines.Read()
	// Find each name of UseHeader in the header, which must have all once and no other.
	for i := range head {
		head[i] = strings.ToLower(strings.TrimSpace(head[i]))
	}
	var places []int
	for _, name := range UseHeader() {
		places = append(places, slices.Index(head, name))
	}
	if err != nil || len(head) != len(places) || slices.Contains(places, -1) {
		r.fail(reject("csv", "header", 0, "want "+strings.Join(UseHeader(), ",")))
		return
	}
	cells := make([]string, len(places))
	for {
		offset := int(lines.InputOffset())
		row, err := lines.Read()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			r.fail(reject("csv", "line", offset, "is no CSV"))
			continue
		case len(row) != len(places):
			r.fail(reject("csv", "line", offset, "has "+strconv.Itoa(len(row))+" columns, want 6"))
			continue
		}
		for i, place := range places {
			cells[i] = original(strings.TrimSpace(row[place]))
		}
		r.add(use("csv", cells, offset))
	}
}
