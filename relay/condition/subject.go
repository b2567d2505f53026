package condition

import (
	"strings"
	"time"

	"github.com/expr-lang/expr/types"
)

// Subject has the values that the expressions of a rule can use.
type Subject struct {
	// Values are the readings of the uplink by key, and Previous the previous readings. Each is
	// a float64 or a string.
	Values, Previous map[string]any
	Device           Device
	Uplink           Uplink
	Event            map[string]any // type and data of a device's event
	FrameTime        time.Time      // time of the frame, in the zone of hour and weekday
}

// Device is the device of a frame. Zero times and nil pointers are missing values.
type Device struct {
	ID, Identifier, Name, DecoderID, LocationID string
	LastSeenAt                                  time.Time
	Longitude, Latitude                         *float64 // degrees
}

// Uplink is the radio data of a frame. Zero times and nil pointers are missing values.
type Uplink struct {
	FCnt, FPort, Gateways *int64
	RSSI, SNR             *float64 // dBm and dB, of the best gateway
	Time                  time.Time
}

// MissingKey is the error of a condition that examines a missing value. The condition then does not
// hold. The error is not a fault of the condition.
type MissingKey struct {
	Name string // for example values.temperature
}

// Error implements error.
func (e *MissingKey) Error() string { return e.Name + " is missing" }

// The names of objects. A field of an object, such as values.temperature, is a slot: a variable
// that is set before each run.
const (
	rootValues   = "values"
	rootPrevious = "previous"
	rootDevice   = "device"
	rootUplink   = "uplink"
	rootEvent    = "event"
)

// optionalMark is the prefix of the variable of a slot whose value may be nil.
const optionalMark = "?"

// field is a value of a subject that an expression can read. value returns nil if the value is
// missing.
type field struct {
	valueType types.Type
	value     func(s *Subject) any
}

// subjectFields returns the fields of a subject by their names in expressions, without the keys of
// values, previous and event.
func subjectFields() map[string]field {
	object, timeType := types.TypeOf(map[string]any{}), types.TypeOf(time.Time{})
	fields := map[string]field{
		rootValues:            {object, func(s *Subject) any { return s.Values }},
		rootPrevious:          {object, func(s *Subject) any { return s.Previous }},
		rootEvent:             {object, func(s *Subject) any { return s.Event }},
		"hour":                {types.Int, func(s *Subject) any { return s.FrameTime.Hour() }},
		"weekday":             {types.Int, func(s *Subject) any { return weekday(s.FrameTime) }},
		"now":                 {timeType, func(s *Subject) any { return s.FrameTime }},
		"device.id":           {types.String, func(s *Subject) any { return s.Device.ID }},
		"device.identifier":   {types.String, func(s *Subject) any { return s.Device.Identifier }},
		"device.name":         {types.String, func(s *Subject) any { return s.Device.Name }},
		"device.decoder_id":   {types.String, func(s *Subject) any { return s.Device.DecoderID }},
		"device.location_id":  {types.String, func(s *Subject) any { return s.Device.LocationID }},
		"device.last_seen_at": {timeType, func(s *Subject) any { return timeOrNil(s.Device.LastSeenAt) }},
		"device.longitude":    {types.Float64, func(s *Subject) any { return floatOrNil(s.Device.Longitude) }},
		"device.latitude":     {types.Float64, func(s *Subject) any { return floatOrNil(s.Device.Latitude) }},
		"uplink.f_cnt":        {types.Int, func(s *Subject) any { return intOrNil(s.Uplink.FCnt) }},
		"uplink.f_port":       {types.Int, func(s *Subject) any { return intOrNil(s.Uplink.FPort) }},
		"uplink.gateways":     {types.Int, func(s *Subject) any { return intOrNil(s.Uplink.Gateways) }},
		"uplink.rssi":         {types.Float64, func(s *Subject) any { return floatOrNil(s.Uplink.RSSI) }},
		"uplink.snr":          {types.Float64, func(s *Subject) any { return floatOrNil(s.Uplink.SNR) }},
		"uplink.time":         {timeType, func(s *Subject) any { return timeOrNil(s.Uplink.Time) }},
	}
	for _, root := range []string{rootDevice, rootUplink} {
		fields[root] = field{object, func(s *Subject) any {
			values := make(map[string]any)
			for name, f := range fields {
				key, isField := strings.CutPrefix(name, root+".")
				if !isField {
					continue
				}
				if v := f.value(s); v != nil {
					values[key] = v
				}
			}
			return values
		}}
	}
	return fields
}

// keyValue returns the function that reads the value of a key of values, previous or event.
func keyValue(root, key string) func(s *Subject) any {
	return func(s *Subject) any {
		switch root {
		case rootValues:
			return clipText(s.Values[key])
		case rootPrevious:
			return clipText(s.Previous[key])
		}
		return clipText(s.Event[key])
	}
}

// clipText clips a text to the length that patterns may examine. It returns other values unchanged.
func clipText(v any) any {
	if text, ok := v.(string); ok {
		return firstCharacters(text, maxTextRead)
	}
	return v
}

// weekday returns the day of the week: 1 for Monday to 7 for Sunday.
func weekday(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 }

func timeOrNil(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}

func floatOrNil(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

func intOrNil(v *int64) any {
	if v == nil {
		return nil
	}
	return int(*v)
}
