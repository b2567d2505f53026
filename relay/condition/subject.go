package condition

import (
	"time"

	"github.com/expr-lang/expr/types"
)

// Subject has the values that the expressions of a rule can use.
type Subject struct {
	// Values are the readings of the uplink and Previous those before it, float64
	// or string by key.
	Values, Previous map[string]any
	Device           Device
	Uplink           Uplink
	// Event holds the data of a device's event and its type.
	Event map[string]any
	// At is the time of the frame in the account's zone: now, hour and weekday.
	At time.Time
}

// Device is the device of a frame. A zero time and a nil pointer are missing.
type Device struct {
	ID, Identifier, Name, DecoderID, LocationID string
	LastSeenAt                                  time.Time
	Longitude, Latitude                         *float64 // degrees
}

// Uplink is the radio data of a frame. A zero time and a nil pointer are
// missing.
type Uplink struct {
	FCnt, FPort, Gateways *int64
	RSSI, SNR             *float64 // dBm and dB, of the best gateway
	Time                  time.Time
}

// MissingKey is the error of a condition that examines a value that is not there. The
// condition does not hold, and nothing is wrong with it.
type MissingKey struct {
	Name string // values.temperature
}

// Error implements error.
func (e *MissingKey) Error() string { return e.Name + " is missing" }

// The names that an expression begins with. A name below one of them, such as
// values.temperature, is a slot: a variable of its own that is filled before a run.
const (
	rootValues   = "values"
	rootPrevious = "previous"
	rootDevice   = "device"
	rootUplink   = "uplink"
	rootEvent    = "event"
)

// optionalMark begins the name of a slot that may be nil.
const optionalMark = "?"

// subjectTypes are the names that an expression can read, with their types.
func subjectTypes() types.Map {
	object := types.TypeOf(map[string]any{})
	timeType := types.TypeOf(time.Time{})
	return types.Map{
		rootValues: object, rootPrevious: object, rootDevice: object, rootUplink: object, rootEvent: object,
		"hour": types.Int, "weekday": types.Int, "now": timeType,
		"device.id": types.String, "device.identifier": types.String, "device.name": types.String,
		"device.decoder_id": types.String, "device.location_id": types.String, "device.last_seen_at": timeType,
		"device.longitude": types.Float64, "device.latitude": types.Float64,
		"uplink.f_cnt": types.Int, "uplink.f_port": types.Int, "uplink.gateways": types.Int,
		"uplink.rssi": types.Float64, "uplink.snr": types.Float64, "uplink.time": timeType,
		types.Extra: types.Any, // the slots of keys; visitor refuses unknown names
	}
}

func (s *Subject) root(name string) any {
	switch name {
	case rootValues:
		return s.Values
	case rootPrevious:
		return s.Previous
	case rootDevice:
		return s.object(rootDevice, "id", "identifier", "name", "decoder_id", "location_id", "last_seen_at", "longitude", "latitude")
	case rootUplink:
		return s.object(rootUplink, "f_cnt", "f_port", "rssi", "snr", "gateways", "time")
	case rootEvent:
		return s.Event
	case "hour":
		return s.At.Hour()
	case "weekday":
		return (int(s.At.Weekday())+6)%7 + 1
	case "now":
		return s.At
	}
	return nil
}

func (s *Subject) object(root string, fields ...string) map[string]any {
	fieldTypes := make(map[string]any, len(fields))
	for _, f := range fields {
		if v := s.slot(root, f); v != nil {
			fieldTypes[f] = v
		}
	}
	return fieldTypes
}

// slot returns a value below a root, nil if it is missing.
func (s *Subject) slot(root, key string) any {
	switch root {
	case rootValues:
		return clipped(s.Values[key])
	case rootPrevious:
		return clipped(s.Previous[key])
	case rootEvent:
		return clipped(s.Event[key])
	case rootDevice:
		return s.Device.field(key)
	}
	return s.Uplink.field(key)
}

// clipped bounds a text, since patterns examine all of it.
func clipped(v any) any {
	if text, ok := v.(string); ok && len(text) > maxConditionRun {
		return firstCharacters(text, maxConditionRun)
	}
	return v
}

func (d *Device) field(key string) any {
	switch key {
	case "id":
		return d.ID
	case "identifier":
		return d.Identifier
	case "name":
		return d.Name
	case "decoder_id":
		return d.DecoderID
	case "location_id":
		return d.LocationID
	case "last_seen_at":
		return known(d.LastSeenAt)
	case "longitude":
		return number(d.Longitude)
	case "latitude":
		return number(d.Latitude)
	}
	return nil
}

func (u *Uplink) field(key string) any {
	switch key {
	case "f_cnt":
		return intOrNil(u.FCnt)
	case "f_port":
		return intOrNil(u.FPort)
	case "gateways":
		return intOrNil(u.Gateways)
	case "rssi":
		return number(u.RSSI)
	case "snr":
		return number(u.SNR)
	case "time":
		return known(u.Time)
	}
	return nil
}

func known(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}

func number(n *float64) any {
	if n == nil {
		return nil
	}
	return *n
}

func intOrNil(n *int64) any {
	if n == nil {
		return nil
	}
	return int(*n)
}
