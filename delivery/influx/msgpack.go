package influx

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/penstock/penstock/relay/account"
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
	acct      account.ID
	size      int // the length of the response
	rest      []byte
	err       error
	message   string // the error in the response
	truncated bool   // the server truncated the rows
	out       []iot.Point
}

// readMsgpack returns the points of a response to SELECT value, text GROUP BY *.
func readMsgpack(acct account.ID, body []byte) ([]iot.Point, error) {
	p := msgpackReader{acct: acct, size: len(body), rest: body}
	p.object(func(name string) bool {
		if name != "results" {
			return false
		}
		p.array(p.result)
		return true
	})
	if p.err == nil && len(p.rest) > 0 {
		p.fail(errors.New("more after it"))
	}
	switch {
	case p.err != nil:
		return nil, p.err
	case p.truncated || p.message != "":
		return nil, responseError(p.message, p.truncated)
	}
	return p.out, nil
}

func (p *msgpackReader) result() {
	p.object(func(name string) bool {
		if name != "series" {
			return false
		}
		p.array(p.series)
		return true
	})
}

// series reads one series.
func (p *msgpackReader) series() {
	var name string
	tags := make(map[string]string, 8)
	first := len(p.out)
	p.object(func(member string) bool {
		switch member {
		case "name":
			name = p.text()
		case "tags":
			p.object(func(tag string) bool {
				tags[tag] = p.text()
				return true
			})
		case "values":
			p.array(p.row)
		default:
			return false
		}
		return true
	})
	of := pointOf(p.acct, name, func(tag string) string { return tags[tag] })
	for i, row := range p.out[first:] {
		of.Time, of.Value, of.Text, of.IsText = row.Time, row.Value, row.Text, row.IsText
		p.out[first+i] = of
	}
}

// row reads time, value and text.
func (p *msgpackReader) row() {
	if n := p.length(msgp.ReadArrayHeaderBytes); p.err == nil && n != 3 {
		p.fail(fmt.Errorf("a row of %d columns", n))
	}
	row := iot.Point{Time: time.Unix(0, p.integer()).UTC()}
	if row.IsText = p.null(); !row.IsText {
		row.Value = p.number()
	}
	if text := p.optional(); row.IsText {
		row.Text = unclean(text)
	}
	p.out = append(p.out, row)
}

// object parses a map and passes each name to member, which reads the value and
// returns true. object itself reads the members that report an error or a
// truncated response, and skips the others.
func (p *msgpackReader) object(member func(name string) bool) {
	for range p.length(msgp.ReadMapHeaderBytes) {
		name := p.text()
		if p.err != nil {
			return
		}
		if member(name) {
			continue
		}
		switch name {
		case "error":
			p.message = p.text()
		case "partial":
			p.truncated = p.boolean() || p.truncated
		default:
			p.advance(msgp.Skip(p.rest))
		}
	}
}

func (p *msgpackReader) array(element func()) {
	n := p.length(msgp.ReadArrayHeaderBytes)
	p.out = slices.Grow(p.out, min(n, len(p.rest)/8))
	for range n {
		if p.err != nil {
			return
		}
		element()
	}
}

// length reads the header of a map or an array. A length that exceeds the
// remaining bytes is an error.
func (p *msgpackReader) length(header func([]byte) (uint32, []byte, error)) int {
	if p.err != nil {
		return 0
	}
	n, rest, err := header(p.rest)
	if err == nil && int64(n) > int64(len(rest)) {
		err = fmt.Errorf("%d elements in %d octets", n, len(rest))
	}
	if !p.advance(rest, err) {
		return 0
	}
	return int(n)
}

func (p *msgpackReader) text() string {
	if p.err != nil {
		return ""
	}
	s, rest, err := msgp.ReadStringBytes(p.rest)
	p.advance(rest, err)
	return s
}

// optional reads a string or nil.
func (p *msgpackReader) optional() string {
	if p.null() {
		return ""
	}
	return p.text()
}

func (p *msgpackReader) integer() int64 {
	if p.err != nil {
		return 0
	}
	n, rest, err := msgp.ReadInt64Bytes(p.rest)
	p.advance(rest, err)
	return n
}

// number reads a double, or the integer of a field that another program
// declared.
func (p *msgpackReader) number() float64 {
	if p.err != nil {
		return 0
	}
	if msgp.NextType(p.rest) == msgp.IntType {
		return float64(p.integer())
	}
	f, rest, err := msgp.ReadFloat64Bytes(p.rest)
	p.advance(rest, err)
	return f
}

func (p *msgpackReader) boolean() bool {
	if p.err != nil {
		return false
	}
	b, rest, err := msgp.ReadBoolBytes(p.rest)
	p.advance(rest, err)
	return b
}

// null reads a nil if it is next.
func (p *msgpackReader) null() bool {
	if p.err != nil || msgp.NextType(p.rest) != msgp.NilType {
		return false
	}
	rest, err := msgp.ReadNilBytes(p.rest)
	return p.advance(rest, err)
}

// advance continues after the bytes that were read, unless that failed.
func (p *msgpackReader) advance(rest []byte, err error) bool {
	if err != nil {
		p.fail(err)
		return false
	}
	p.rest = rest
	return true
}

func (p *msgpackReader) fail(err error) {
	if p.err == nil {
		p.err = fmt.Errorf("an answer: offset %d: %w", p.size-len(p.rest), err)
	}
}
