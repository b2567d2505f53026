package senml

import (
	"math"
	"time"
)

// resolve makes a record of one record's own fields and the base.
func (p *parser) resolve(f fields) {
	record := f.value
	record.Name = p.base.name + f.name
	record.Unit = f.unit
	if record.Unit == "" {
		record.Unit = p.base.unit
	}
	p.addBase(&record, f)
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

// addBase adds the base value and the base sum; where only one of the two is
// there, the other is zero (section 4.1).
func (p *parser) addBase(record *Record, f fields) {
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
		p.fail("v", "is beyond what a number can hold")
	}
}

// at resolves a time: absolute from 2^28 on, else relative to the reference.
// Zero is the moment of sending, which is the frame's own time.
func (p *parser) timeOf(seconds float64) time.Time {
	const maxSeconds = 253402300799 // the year 9999
	switch {
	case seconds == 0:
		return time.Time{}
	case seconds > maxSeconds, seconds < -relative:
		p.fail("t", "is no time")
		return time.Time{}
	case seconds >= relative:
		integer, frac := math.Modf(seconds)
		return time.Unix(int64(integer), int64(math.Round(frac*1e6))*1e3).UTC()
	case p.reference.IsZero():
		return time.Time{}
	}
	integer, frac := math.Modf(seconds)
	return p.reference.Add(time.Duration(integer)*time.Second + time.Duration(math.Round(frac*1e6))*time.Microsecond).UTC()
}
