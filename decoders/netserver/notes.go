package netserver

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/penstock/penstock/decoders"
)

// notes are the problems of one frame. They are kept with their places in the
// body, since a parser reads its fields in an order of its own.
type notes struct {
	sender   Sender
	post     *Post // that the frame came with
	err      error
	errAt    int
	warnings []note
	time     note // the first time that could not be read
}

type note struct {
	offset int
	text   string
}

// refuse keeps the first essential field that could not be read.
func (n *notes) refuse(offset int, field, reason string) {
	if n.err == nil || offset < n.errAt {
		n.err = &decoders.Error{Format: string(n.sender), Field: field, Offset: -1, Reason: reason}
		n.errAt = offset
	}
}

func (n *notes) untimed(offset int, field, reason string) {
	if n.time.text == "" || offset < n.time.offset {
		n.time = note{offset, field + ": " + reason}
	}
}

// maxWarnings bounds the warnings that a hostile body can give a frame.
const maxWarnings = 20

// write puts the notes into the frame and returns the refusal, if any.
func (n *notes) write(f *decoders.Frame) error {
	slices.SortStableFunc(n.warnings, func(a, b note) int { return cmp.Compare(a.offset, b.offset) })
	for _, w := range n.warnings[:min(len(n.warnings), maxWarnings)] {
		f.Warnings = append(f.Warnings, w.text)
	}
	if f.TimeNote == "" {
		f.TimeNote = n.time.text
	}
	return n.err
}

// Refuse notes that the frame cannot do without a field, once all others were
// read.
func (d document) Refuse(path, reason string) {
	d.notes.refuse(math.MaxInt, d.field(path), reason)
}

// Warn notes what is wrong with a field that the frame can do without.
func (d document) Warn(path, reason string) {
	d.notes.warnings = append(d.notes.warnings, note{d.at(path), d.field(path) + ": " + reason})
}

// RefuseField notes that a field which the frame cannot do without is there and
// cannot be read.
func (d document) RefuseField(path, reason string) {
	d.notes.refuse(d.at(path), d.field(path), reason)
}

// joinValues joins the values of those names that are there, as "batt 3.5, temp 21".
func joinValues(values map[string]any, names ...string) string {
	var parts []string
	for _, name := range names {
		if v, ok := values[name]; ok && v != nil && v != "" {
			parts = append(parts, fmt.Sprintf("%s %v", name, v))
		}
	}
	s := strings.Join(parts, ", ")
	const most = 500
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "")
	}
	return s
}
