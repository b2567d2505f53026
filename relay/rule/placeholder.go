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
	d := &o.Device
	s := condition.Subject{
		Values: subjectOf(o.Readings), Previous: subjectOf(o.Previous), Event: o.Event, At: o.Time.In(zone),
		Device: condition.Device{
			ID: d.ID, Identifier: d.Identifier, Name: d.Name, DecoderID: d.DecoderID, LocationID: d.LocationID,
			LastSeenAt: d.LastSeen, Longitude: d.Longitude, Latitude: d.Latitude,
		},
		Uplink: condition.Uplink{Time: o.Time},
	}
	if u := o.Radio; u != nil {
		s.Uplink = condition.Uplink{FCnt: u.FCnt, FPort: u.FPort, Gateways: u.Gateways, RSSI: u.RSSI, SNR: u.SNR, Time: o.Time}
	}
	return s
}

func subjectOf(readings map[string]Value) map[string]any {
	out := make(map[string]any, len(readings))
	for key, v := range readings {
		if v.IsText {
			out[key] = v.Text
		} else {
			out[key] = v.Value
		}
	}
	return out
}
