package rule

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/relay/condition"
	"github.com/penstock/penstock/relay/template"
)

// keyPrefix begins the placeholders of readings: %key:temperature.
const keyPrefix = "key:"

// placeholders are the names that URLs and texts may hold after a percent sign.
func placeholders() []string {
	return []string{"rule", "state", "device", "identifier", "time", keyPrefix}
}

// placeholder returns the value of a placeholder; a reading that is missing is
// empty.
func (o *Occurrence) placeholder(name string, zone *time.Location) string {
	switch name {
	case "rule":
		return o.Rule.Name
	case "state":
		return string(o.State)
	case "device":
		return o.deviceName()
	case "identifier":
		return o.Device.Identifier
	case "time":
		return o.Time.In(zone).Format(time.RFC3339)
	}
	v, ok := o.Readings[strings.TrimPrefix(name, keyPrefix)]
	if !ok {
		return ""
	}
	return v.String()
}

// expand replaces the placeholders of a text.
func (o *Occurrence) expand(text string, zone *time.Location) string {
	return template.ExpandText(text, placeholders(), func(name string) string { return o.placeholder(name, zone) })
}

func (o *Occurrence) deviceName() string {
	return cmp.Or(o.Device.Name, o.Device.Identifier, o.Device.ID)
}

// String returns the reading without its units.
func (v Value) String() string {
	if v.IsText {
		return v.Text
	}
	if math.Abs(v.Value) >= 1e15 {
		return strconv.FormatFloat(v.Value, 'g', -1, 64)
	}
	return strconv.FormatFloat(v.Value, 'f', -1, 64)
}

// subject is what a body sees of an occurrence.
func (o *Occurrence) subject(zone *time.Location) condition.Subject {
	s := subjectOf(&o.Device, o.Device.LastSeen, o.Time, zone, o.Radio)
	s.Values, s.Previous, s.Event = plainValues(o.Readings), plainValues(o.Previous), o.Event
	return s
}

// plainValues returns readings without their units.
func plainValues(readings map[string]Value) map[string]any {
	values := make(map[string]any, len(readings))
	for key, v := range readings {
		if v.IsText {
			values[key] = v.Text
		} else {
			values[key] = v.Value
		}
	}
	return values
}
