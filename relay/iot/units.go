package iot

import (
	"cmp"
	"math"
	"strconv"
)

// Units are the units of returned values. Readings are kept in metric units; a
// sensor type that has imperial units says how its values become imperial, all
// other values are the same in both.
type Units string

// The units.
const (
	Metric   Units = "metric"
	Imperial Units = "imperial"
)

// ParseUnits reads the units of a request; empty means metric.
func ParseUnits(s string) (Units, bool) {
	switch u := Units(s); u {
	case "":
		return Metric, true
	case Metric, Imperial:
		return u, true
	}
	return Metric, false
}

// ToImperial converts a value: metric × ImperialSlope + ImperialOffset, where no
// slope stands for 1, to 12 digits. A type that has no imperial units, or whose
// values are the same in both, has the same numbers in both.
func (t SensorType) ToImperial(v float64) float64 {
	slope := cmp.Or(t.ImperialSlope, 1)
	if t.ImperialUnits == "" || slope == 1 && t.ImperialOffset == 0 {
		return v
	}
	return rounded(v*slope + t.ImperialOffset)
}

// of converts a metric value to the units and reports whether it is finite.
func (u Units) convert(t SensorType, v float64) (converted float64, finite bool) {
	if u == Imperial {
		v = t.ToImperial(v)
	}
	return v, !math.IsNaN(v) && !math.IsInf(v, 0)
}

// average is of, rounded to 12 digits: the stores add in different orders, which
// changes the last digits.
func (u Units) average(t SensorType, v float64) (converted float64, finite bool) {
	v, finite = u.convert(t, v)
	return rounded(v), finite
}

// rounded rounds a number to 12 digits.
func rounded(v float64) float64 {
	if size := math.Abs(v); size >= 1 && size < 1e9 {
		scale := 1e11
		for limit := 10.0; size >= limit; limit *= 10 {
			scale /= 10 // a power of ten up to 1e22 is exact, so the quotient is the nearest number
		}
		return math.Round(v*scale) / scale
	}
	if r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 11, 64), 64); err == nil {
		return r
	}
	return v // one that would be rounded up beyond the largest
}

// sensorTypeOf returns a sensor type; the name of an unknown one is its id.
func sensorTypeOf(types map[string]SensorType, id string) SensorType {
	t := types[id]
	if t.Name == "" {
		t.Name = id
	}
	return t
}
