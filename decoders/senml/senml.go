// Package senml parses Sensor Measurement Lists in JSON (RFC 8428) and resolves
// them: base names, times, units, values and sums apply to the following records, and times
// relative to now are counted from a reference time. CBOR, XML and EXI are not supported.
//
// It refuses a pack of an unknown version (section 4.4), unknown fields whose names end in "_",
// which must be understood, records without a name, and records without a value.
package senml

import (
	"cmp"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// Record is one resolved measurement.
type Record struct {
	Name string
	Unit string
	Kind Kind // of the value; None if there is only a sum

	Value float64 // Number, and Bool as 0 or 1
	Text  string  // Text
	Data  []byte  // Data
	// Sum is the integral of the value over time, or nil.
	Sum *float64
	// Time is zero if it is the time at which the record was sent.
	Time time.Time
	// Unknown lists the unknown members of this record and of
	// preceding records without a value, such as "0.x".
	Unknown []string
}

// Kind is the kind of a record's value.
type Kind uint8

// The kinds of values.
const (
	None Kind = iota
	Number
	Bool
	Text
	Data
)

const (
	format = "senml"
	// version is the highest SenML version read (RFC 8428 section 4.4).
	version = 10
	// minAbsolute is the smallest absolute time (section 4.5.3).
	minAbsolute = 1 << 28
	// maxRecords is the largest number of records of a pack.
	maxRecords = 1000
	// tooMany is the reason of the error for more records.
	tooMany = "is one record too many"
	// maxUnknown is the largest number of unknown fields that are noted.
	maxUnknown = 20
)

// base holds the base fields, which apply to later records.
type base struct {
	name, unit string
	time       float64
	value, sum *float64
}

// fields are the fields of one record.
type fields struct {
	name, unit string
	time       float64
	value      Record // Kind and its value
	sum        *float64
}

// Parse parses and resolves a pack. Relative times count from reference; if that is
// zero, they become zero. The records before the place of an error are returned with it.
func Parse(pack []byte, reference time.Time) ([]Record, error) {
	p := parser{r: jsonbody.New(pack), reference: reference}
	if p.r.Kind() != jsonbody.Array {
		p.r.Skip()
		if err := p.close(); err != nil {
			return nil, err
		}
		return nil, &decoders.Error{Format: format, Offset: 0, Reason: "is not a list of records"}
	}
	for ok := p.r.Array(); ok && p.r.More(); p.index++ {
		p.parseRecord()
	}
	if err := p.close(); err != nil {
		return nil, err
	}
	return p.records, p.err
}

type parser struct {
	r         jsonbody.Reader
	base      base
	reference time.Time
	records   []Record
	index     int
	unknown   []string // for the next record
	err       error
}

// close returns an error if the pack is not JSON.
func (p *parser) close() error {
	if e, ok := errors.AsType[*jsonbody.SyntaxError](p.r.Close()); ok {
		return &decoders.Error{Format: "json", Offset: e.Offset, Reason: e.Reason}
	}
	return nil
}

// fail records the first error, after which no record is added.
func (p *parser) fail(field, reason string) {
	if p.err == nil {
		p.err = &decoders.Error{Format: format, Field: strings.TrimSuffix(strconv.Itoa(p.index)+"."+field, "."), Offset: p.r.Offset(), Reason: reason}
	}
}

func (p *parser) parseRecord() {
	var f fields
	if p.r.Kind() != jsonbody.Object {
		p.fail("", "is not a record")
	}
	n := 0
	for key := range p.r.Fields() {
		p.parseField(string(key), &f)
		n++
	}
	if p.err == nil && n > 0 {
		p.resolve(f)
	}
}

func (p *parser) parseField(key string, f *fields) {
	switch key {
	case "bn":
		p.base.name = p.text(key)
	case "bu":
		p.base.unit = p.text(key)
	case "bt":
		p.base.time = p.number(key)
	case "bv":
		p.base.value = new(p.number(key))
	case "bs":
		p.base.sum = new(p.number(key))
	case "bver":
		if p.number(key) > version {
			p.fail(key, "is an unknown version")
		}
	case "n":
		f.name = p.text(key)
	case "u":
		f.unit = p.text(key)
	case "t":
		f.time = p.number(key)
	case "s":
		f.sum = new(p.number(key))
	case "v", "vs", "vb", "vd":
		p.parseValue(key, f)
	case "ut": // when the next value is expected
		p.r.Skip()
	default:
		p.r.Skip()
		if len(p.unknown) < maxUnknown {
			p.unknown = append(p.unknown, strconv.Itoa(p.index)+"."+key)
		}
		if strings.HasSuffix(key, "_") {
			p.fail(key, "must be understood and is unknown")
		}
	}
}

func (p *parser) parseValue(key string, f *fields) {
	if f.value.Kind != None {
		p.fail(key, "is a second value")
	}
	switch v := &f.value; key {
	case "v":
		v.Kind, v.Value = Number, p.number(key)
	case "vs":
		v.Kind, v.Text = Text, p.text(key)
	case "vb":
		v.Kind = Bool
		x := p.r.Value()
		b, ok := x.Bool()
		if !ok || x.Kind != jsonbody.Bool {
			p.fail(key, "is not true or false")
		} else if b {
			v.Value = 1
		}
	case "vd":
		var ok bool
		v.Kind = Data
		if v.Data, ok = p.r.Value().Base64(); !ok {
			p.fail(key, "is not base64")
		}
	}
}

func (p *parser) number(field string) float64 {
	v := p.r.Value()
	n, ok := v.Float()
	if !ok || v.Kind != jsonbody.Number {
		p.fail(field, "is not a number")
	}
	return n
}

func (p *parser) text(field string) string {
	v := p.r.Value()
	if v.Kind != jsonbody.String {
		p.fail(field, "is not a string")
	}
	return v.String()
}

// resolve adds the record that results from fields and the base.
func (p *parser) resolve(f fields) {
	record := f.value
	record.Name = p.base.name + f.name
	record.Unit = cmp.Or(f.unit, p.base.unit)
	// Add the base value and the base sum. A missing value or sum counts as zero if the base
	// has one (section 4.1).
	switch {
	case p.base.value == nil:
	case record.Kind == Number:
		record.Value += *p.base.value
	case record.Kind == None && f.sum == nil && f.name != "":
		record.Kind, record.Value = Number, *p.base.value
	}
	switch {
	case p.base.sum == nil || f.sum == nil && record.Kind == None && f.name == "":
		record.Sum = f.sum
	case f.sum == nil:
		record.Sum = p.base.sum
	default:
		record.Sum = new(*f.sum + *p.base.sum)
	}
	if math.IsInf(record.Value, 0) || record.Sum != nil && math.IsInf(*record.Sum, 0) {
		p.fail("v", "exceeds the range of a number")
	}
	if record.Kind == None && record.Sum == nil {
		if f.name != "" {
			p.fail("v", "is missing, and so are vs, vb, vd and s")
		}
		return // a record of base fields alone sets the base
	}
	if record.Name == "" {
		p.fail("n", "is missing, and so is bn")
		return
	}
	record.Time = p.timeOf(p.base.time + f.time)
	if len(p.records) >= maxRecords {
		p.fail("", tooMany)
	}
	if p.err == nil {
		record.Unknown, p.unknown = p.unknown, nil
		p.records = append(p.records, record)
	}
}

// timeOf resolves a time: absolute from 2^28 on, else relative to the reference.
// Zero is the time of sending, which is the frame's time.
func (p *parser) timeOf(seconds float64) time.Time {
	const maxSeconds = 253402300799 // the year 9999
	switch {
	case seconds == 0:
		return time.Time{}
	case seconds > maxSeconds, seconds < -minAbsolute:
		p.fail("t", "is not a time")
		return time.Time{}
	case seconds < minAbsolute && p.reference.IsZero():
		return time.Time{}
	}
	integer, frac := math.Modf(seconds)
	microseconds := time.Duration(math.Round(frac*1e6)) * time.Microsecond
	if seconds >= minAbsolute {
		return time.Unix(int64(integer), int64(microseconds)).UTC()
	}
	return p.reference.Add(time.Duration(integer)*time.Second + microseconds).UTC()
}
