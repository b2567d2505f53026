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

// packedType is what a server is asked for where many rows are expected: it
// writes MessagePack in two thirds of the time that it takes over JSON. It is
// not asked for aggregates, whose infinities JSON cannot hold and says so.
const packedType = "application/x-msgpack"

// packed is an answer in MessagePack, read from front to back. The first fault
// stays; what is read after it is nothing.
//
// What InfluxDB 1.8 writes: a map with error, or with results, each a map with
// error or with series, each a map of name, tags, columns, values, partial. A
// value is an integer (a time), a double, a string or nil.
type packed struct {
	acct account.ID
	all  int // the length of the answer
	rest []byte
	err  error
	said string // the error that the server tells of
	cut  bool   // the server left rows out
	out  []iot.Point
}

// readPacked returns the points of an answer to SELECT value, text GROUP BY *.
func readPacked(acct account.ID, body []byte) ([]iot.Point, error) {
	p := packed{acct: acct, all: len(body), rest: body}
	p.object(func(name string) bool {
		if name != "results" {
			return false
		}
		p.array(p.result)
		return true
	})
	if p.err == nil && len(p.rest) > 0 {
		p.fault(errors.New("more after it"))
	}
	switch {
	case p.err != nil:
		return nil, p.err
	case p.cut || p.said != "":
		return nil, told(p.said, p.cut)
	}
	return p.out, nil
}

func (p *packed) result() {
	p.object(func(name string) bool {
		if name != "series" {
			return false
		}
		p.array(p.series)
		return true
	})
}

// series reads one series.
func (p *packed) series() {
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
func (p *packed) row() {
	if n := p.length(msgp.ReadArrayHeaderBytes); p.err == nil && n != 3 {
		p.fault(fmt.Errorf("a row of %d columns", n))
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

// object reads a map and hands each name to member, which reads the value and
// returns true. What it leaves is read here: what says that the answer is none,
// or only a part of one; the rest is passed over.
func (p *packed) object(member func(name string) bool) {
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
			p.said = p.text()
		case "partial":
			p.cut = p.boolean() || p.cut
		default:
			p.take(msgp.Skip(p.rest))
		}
	}
}

func (p *packed) array(element func()) {
	n := p.length(msgp.ReadArrayHeaderBytes)
	p.out = slices.Grow(p.out, min(n, len(p.rest)/8))
	for range n {
		if p.err != nil {
			return
		}
		element()
	}
}

// length reads the header of a map or an array. One that says more than there
// is left is a fault.
func (p *packed) length(header func([]byte) (uint32, []byte, error)) int {
	if p.err != nil {
		return 0
	}
	n, rest, err := header(p.rest)
	if err == nil && int64(n) > int64(len(rest)) {
		err = fmt.Errorf("%d elements in %d octets", n, len(rest))
	}
	if !p.take(rest, err) {
		return 0
	}
	return int(n)
}

func (p *packed) text() string {
	if p.err != nil {
		return ""
	}
	s, rest, err := msgp.ReadStringBytes(p.rest)
	p.take(rest, err)
	return s
}

// optional is a text, or nothing where there is nil.
func (p *packed) optional() string {
	if p.null() {
		return ""
	}
	return p.text()
}

func (p *packed) integer() int64 {
	if p.err != nil {
		return 0
	}
	n, rest, err := msgp.ReadInt64Bytes(p.rest)
	p.take(rest, err)
	return n
}

// number is a double, or the integer of a field that another program declared.
func (p *packed) number() float64 {
	if p.err != nil {
		return 0
	}
	if msgp.NextType(p.rest) == msgp.IntType {
		return float64(p.integer())
	}
	f, rest, err := msgp.ReadFloat64Bytes(p.rest)
	p.take(rest, err)
	return f
}

func (p *packed) boolean() bool {
	if p.err != nil {
		return false
	}
	b, rest, err := msgp.ReadBoolBytes(p.rest)
	p.take(rest, err)
	return b
}

// null reads a nil, if that is what is next.
func (p *packed) null() bool {
	if p.err != nil || msgp.NextType(p.rest) != msgp.NilType {
		return false
	}
	rest, err := msgp.ReadNilBytes(p.rest)
	return p.take(rest, err)
}

// take goes on behind what was read, unless reading it failed.
func (p *packed) take(rest []byte, err error) bool {
	if err != nil {
		p.fault(err)
		return false
	}
	p.rest = rest
	return true
}

func (p *packed) fault(err error) {
	if p.err == nil {
		p.err = fmt.Errorf("an answer: offset %d: %w", p.all-len(p.rest), err)
	}
}
