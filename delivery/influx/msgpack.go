package influx

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// msgpackType is the media type requested where many rows are expected, because it
// takes half the time of JSON (docs/adr/0021-readings-as-messagepack.md). It is not
// used for aggregates, because JSON reports infinities as an error.
const msgpackType = "application/x-msgpack"

// msgpackReader parses a MessagePack response from front to back. The first error is
// kept; everything read after it is zero.
//
// InfluxDB 1.8 writes a map with error, or with results, each a map with error
// or with series, each a map of name, tags, columns, values, partial. A value is
// an integer (a time), a double, a string or nil.
type msgpackReader struct {
	acct      relay.AccountID
	size      int // the length of the response
	remaining []byte
	err       error
	message   string // the error in the response
	truncated bool   // the server truncated the rows
	points    []iot.Point
}

// readMsgpack returns the points of a response to SELECT value, text GROUP BY *.
func readMsgpack(acct relay.AccountID, body []byte) ([]iot.Point, error) {
	m := msgpackReader{acct: acct, size: len(body), remaining: body}
	m.object(func(name string) bool {
		if name != "results" {
			return false
		}
		m.array(m.result)
		return true
	})
	if m.err == nil && len(m.remaining) > 0 {
		m.fail(errors.New("more after it"))
	}
	switch {
	case m.err != nil:
		return nil, m.err
	case m.truncated || m.message != "":
		return nil, responseError(m.message, m.truncated)
	}
	return m.points, nil
}

func (m *msgpackReader) result() {
	m.object(func(name string) bool {
		if name != "series" {
			return false
		}
		m.array(m.series)
		return true
	})
}

// series reads one series.
func (m *msgpackReader) series() {
	var name string
	tags := make(map[string]string, 8)
	start := len(m.points)
	m.object(func(member string) bool {
		switch member {
		case "name":
			name = m.text()
		case "tags":
			m.object(func(tag string) bool {
				tags[tag] = m.text()
				return true
			})
		case "values":
			m.array(m.row)
		default:
			return false
		}
		return true
	})
	point := pointOf(m.acct, name, func(tag string) string { return tags[tag] })
	for i, row := range m.points[start:] {
		point.Time, point.Value, point.Text, point.IsText = row.Time, row.Value, row.Text, row.IsText
		m.points[start+i] = point
	}
}

// row reads time, value and text.
func (m *msgpackReader) row() {
	if n := m.length(msgp.ReadArrayHeaderBytes); m.err == nil && n != 3 {
		m.fail(fmt.Errorf("a row of %d columns", n))
	}
	row := iot.Point{Time: time.Unix(0, m.integer()).UTC()}
	if row.IsText = m.null(); !row.IsText {
		row.Value = m.number()
	}
	if text := m.optional(); row.IsText {
		row.Text = unclean(text)
	}
	m.points = append(m.points, row)
}

// object parses a map and passes each name to member, which reads the value and
// returns true. object itself reads the members that report an error or a
// truncated response, and skips the others.
func (m *msgpackReader) object(member func(name string) bool) {
	for range m.length(msgp.ReadMapHeaderBytes) {
		name := m.text()
		if m.err != nil {
			return
		}
		if member(name) {
			continue
		}
		switch name {
		case "error":
			m.message = m.text()
		case "partial":
			m.truncated = m.boolean() || m.truncated
		default:
			m.advance(msgp.Skip(m.remaining))
		}
	}
}

func (m *msgpackReader) array(element func()) {
	n := m.length(msgp.ReadArrayHeaderBytes)
	m.points = slices.Grow(m.points, min(n, len(m.remaining)/8))
	for range n {
		if m.err != nil {
			return
		}
		element()
	}
}

// length reads the header of a map or an array. A length that exceeds the
// remaining bytes is an error.
func (m *msgpackReader) length(header func([]byte) (uint32, []byte, error)) int {
	if m.err != nil {
		return 0
	}
	n, remaining, err := header(m.remaining)
	if err == nil && int64(n) > int64(len(remaining)) {
		err = fmt.Errorf("%d elements in %d octets", n, len(remaining))
	}
	if !m.advance(remaining, err) {
		return 0
	}
	return int(n)
}

func (m *msgpackReader) text() string {
	if m.err != nil {
		return ""
	}
	s, remaining, err := msgp.ReadStringBytes(m.remaining)
	m.advance(remaining, err)
	return s
}

// optional reads a string or nil.
func (m *msgpackReader) optional() string {
	if m.null() {
		return ""
	}
	return m.text()
}

func (m *msgpackReader) integer() int64 {
	if m.err != nil {
		return 0
	}
	n, remaining, err := msgp.ReadInt64Bytes(m.remaining)
	m.advance(remaining, err)
	return n
}

// number reads a double, or the integer of a field that another program
// declared.
func (m *msgpackReader) number() float64 {
	if m.err != nil {
		return 0
	}
	if msgp.NextType(m.remaining) == msgp.IntType {
		return float64(m.integer())
	}
	f, remaining, err := msgp.ReadFloat64Bytes(m.remaining)
	m.advance(remaining, err)
	return f
}

func (m *msgpackReader) boolean() bool {
	if m.err != nil {
		return false
	}
	b, remaining, err := msgp.ReadBoolBytes(m.remaining)
	m.advance(remaining, err)
	return b
}

// null reads a nil if it is next.
func (m *msgpackReader) null() bool {
	if m.err != nil || msgp.NextType(m.remaining) != msgp.NilType {
		return false
	}
	remaining, err := msgp.ReadNilBytes(m.remaining)
	return m.advance(remaining, err)
}

// advance continues after the bytes that were read, unless that failed.
func (m *msgpackReader) advance(remaining []byte, err error) bool {
	if err != nil {
		m.fail(err)
		return false
	}
	m.remaining = remaining
	return true
}

func (m *msgpackReader) fail(err error) {
	if m.err == nil {
		m.err = fmt.Errorf("an answer: offset %d: %w", m.size-len(m.remaining), err)
	}
}
