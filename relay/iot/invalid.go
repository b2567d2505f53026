package iot

import (
	"math"
	"time"
)

// Invalid returns why no store accepts a point, or an empty string: it has no sensor
// type, its value is not finite, or its time is not in the years 1678 to 2261.
func (p *Point) Invalid() string {
	switch {
	case p.Type == "":
		return "no sensor type"
	case !p.IsText && !finiteOrNil(&p.Value):
		return "the value is not a finite number"
	}
	return invalidTime(p.Time)
}

// Invalid returns why no store accepts radio data, or an empty string: a value is not
// finite, or the time is not in the years 1678 to 2261.
func (u *RadioData) Invalid() string {
	for _, v := range []*float64{u.RSSI, u.SNR, u.Battery, u.Margin, u.Latitude, u.Longitude} {
		if !finiteOrNil(v) {
			return "a value is not a finite number"
		}
	}
	return invalidTime(u.Time)
}

func finiteOrNil(v *float64) bool {
	return v == nil || !math.IsNaN(*v) && !math.IsInf(*v, 0)
}

// invalidTime checks that nanoseconds since 1970 fit into 64 bits.
func invalidTime(t time.Time) string {
	if year := t.UTC().Year(); year < 1678 || year > 2261 {
		return "the time is outside the years 1678 to 2261"
	}
	return ""
}
