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

// msgpackReader parses a MessagePack response from front to back. It stores the first error.
// After an error, each read returns zero.
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
		m.fail(errors.New("octets after the response"))
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

func (m *msgpackReader) row() {
	if n := m.length(msgp.ReadArrayHeaderBytes); m.err == nil && n != 3 {
		m.fail(fmt.Errorf("a row of %d columns", n))
	}
	row := iot.Point{Time: time.Unix(0, read(m, msgp.ReadInt64Bytes)).UTC()}
	if row.IsText = m.null(); !row.IsText {
		row.Value = m.number()
	}
	if !m.null() {
		if text := m.text(); row.IsText {
			row.Text = unclean(text)
		}
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
			m.truncated = read(m, msgp.ReadBoolBytes) || m.truncated
		default:
			read(m, func(b []byte) (struct{}, []byte, error) {
				remaining, err := msgp.Skip(b)
				return struct{}{}, remaining, err
			})
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

// length reads the header of a map or array. A length beyond the remaining bytes is an error.
func (m *msgpackReader) length(header func([]byte) (uint32, []byte, error)) int {
	return int(read(m, func(b []byte) (uint32, []byte, error) {
		n, remaining, err := header(b)
		if err == nil && int64(n) > int64(len(remaining)) {
			err = fmt.Errorf("%d elements in %d octets", n, len(remaining))
		}
		return n, remaining, err
	}))
}

func (m *msgpackReader) text() string { return read(m, msgp.ReadStringBytes) }

// number reads a double, or the integer of a field that another program declared.
func (m *msgpackReader) number() float64 {
	if msgp.NextType(m.remaining) == msgp.IntType {
		return float64(read(m, msgp.ReadInt64Bytes))
	}
	return read(m, msgp.ReadFloat64Bytes)
}

func (m *msgpackReader) null() bool {
	return msgp.NextType(m.remaining) == msgp.NilType && read(m, func(b []byte) (bool, []byte, error) {
		remaining, err := msgp.ReadNilBytes(b)
		return err == nil, remaining, err
	})
}

// read reads a value. It returns zero after an error.
func read[T any](m *msgpackReader, parse func([]byte) (T, []byte, error)) (value T) {
	if m.err != nil {
		return value
	}
	parsed, remaining, err := parse(m.remaining)
	if err != nil {
		m.fail(err)
		return value
	}
	m.remaining = remaining
	return parsed
}

func (m *msgpackReader) fail(err error) {
	if m.err == nil {
		m.err = fmt.Errorf("response to a query: offset %d: %w", m.size-len(m.remaining), err)
	}
}
