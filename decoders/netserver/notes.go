package netserver

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/penstock/penstock/decoders"
)

// notes are the problems of one frame with their offsets in the body. Parsers read fields in
// any order; the offsets restore the order of the body.
type notes struct {
	sender    Sender
	post      *Post // the post of the frame
	err       error
	errOffset int
	warnings  []note
	time      note // the first time in the body that cannot be read
}

type note struct {
	offset int
	text   string
}

// refuse records the error about the first essential field in the body that cannot be read.
func (n *notes) refuse(offset int, field, reason string) {
	if n.err == nil || offset < n.errOffset {
		n.err = &decoders.Error{Format: string(n.sender), Field: field, Offset: -1, Reason: reason}
		n.errOffset = offset
	}
}

// post returns the post that contains the document.
func (d document) post() *Post { return d.notes.post }

// maxWarnings is the largest number of warnings of a frame: a hostile body could cause many.
const maxWarnings = 20

// write adds the notes to the frame and returns the error of a refused frame.
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

// Refuse refuses the frame because of an essential field, unless another field is refused by
// RefuseField.
func (d document) Refuse(path, reason string) {
	d.notes.refuse(math.MaxInt, d.field(path), reason)
}

// RefuseField refuses the frame because an essential field is present and cannot be read.
func (d document) RefuseField(path, reason string) {
	d.notes.refuse(d.offset(path), d.field(path), reason)
}

// Warn notes a problem with an optional field.
func (d document) Warn(path, reason string) {
	d.notes.warnings = append(d.notes.warnings, note{d.offset(path), d.field(path) + ": " + reason})
}

// WarnTime notes a problem with a time.
func (d document) WarnTime(path, reason string) {
	if offset := d.offset(path); d.notes.time.text == "" || offset < d.notes.time.offset {
		d.notes.time = note{offset, d.field(path) + ": " + reason}
	}
}

// joinValues joins the named values that are present, such as "batt 3.5, temp 21".
func joinValues(values map[string]any, names ...string) string {
	var parts []string
	for _, name := range names {
		if v, ok := values[name]; ok && v != nil && v != "" {
			parts = append(parts, fmt.Sprintf("%s %v", name, v))
		}
	}
	s := strings.Join(parts, ", ")
	const maxLen = 500
	return strings.ToValidUTF8(s[:min(len(s), maxLen)], "")
}
