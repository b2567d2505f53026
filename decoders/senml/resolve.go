package senml

import (
	"math"
	"time"
)

// resolve makes a record of one record's own fields and the base.
func (p *parser) resolve(f fields) {
	out := f.value
	out.Name = p.base.name + f.name
	out.Unit = f.unit
	if out.Unit == "" {
		out.Unit = p.base.unit
	}
	p.addBase(&out, f)
	if out.Kind == None && out.Sum == nil {
		if f.name != "" {
			p.fail("v", "is missing, and so are vs, vb, vd and s")
		}
		return // a record of base fields alone sets the base
	}
	if out.Name == "" {
		p.fail("n", "is missing, and so is bn")
		return
	}
	out.Time = p.at(p.base.time + f.time)
	if len(p.records) >= maxRecords {
		p.fail("", tooMany)
	}
	if p.err == nil {
		out.Unknown, p.unknown = p.unknown, nil
		p.records = append(p.records, out)
	}
}

// addBase adds the base value and the base sum; where only one of the two is
// there, the other is zero (section 4.1).
func (p *parser) addBase(out *Record, f fields) {
	switch {
	case p.base.value == nil:
	case out.Kind == Number:
		out.Value += *p.base.value
	case out.Kind == None && f.sum == nil && f.name != "":
		out.Kind, out.Value = Number, *p.base.value
	}
	switch {
	case p.base.sum == nil || f.sum == nil && out.Kind == None && f.name == "":
		out.Sum = f.sum
	case f.sum == nil:
		out.Sum = p.base.sum
	default:
		out.Sum = new(*f.sum + *p.base.sum)
	}
	if math.IsInf(out.Value, 0) || out.Sum != nil && math.IsInf(*out.Sum, 0) {
		p.fail("v", "is beyond what a number can hold")
	}
}

// at resolves a time: absolute from 2^28 on, else relative to the reference.
// Zero is the moment of sending, which is the frame's own time.
func (p *parser) at(seconds float64) time.Time {
	const last = 253402300799 // the year 9999
	switch {
	case seconds == 0:
		return time.Time{}
	case seconds > last, seconds < -relative:
		p.fail("t", "is no time")
		return time.Time{}
	case seconds >= relative:
		whole, frac := math.Modf(seconds)
		return time.Unix(int64(whole), int64(math.Round(frac*1e6))*1e3).UTC()
	case p.reference.IsZero():
		return time.Time{}
	}
	whole, frac := math.Modf(seconds)
	return p.reference.Add(time.Duration(whole)*time.Second + time.Duration(math.Round(frac*1e6))*time.Microsecond).UTC()
}
