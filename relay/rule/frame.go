package rule

import (
	"maps"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/condition"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/tracing"
)

// ruleFrame is a frame with the values for expressions. All rules share it.
type ruleFrame struct {
	record           string
	device           *iot.Device
	frameAt          time.Time // the frame's time
	heardAt          time.Time // time of receipt by the network; orders the frames of a device
	trigger          Trigger
	fromDevice       bool // the device itself sent the frame
	points           []iot.Point
	previous         []iot.Point // the newest previous reading of each key; only if a rule examines them
	radio            *iot.RadioData
	event            map[string]any
	conditionSubject condition.Subject
	trace            tracing.Parent
	types            map[string]iot.SensorType // sensor types for units; set before occurrences are created
}

// triggerOf returns the trigger of a frame: OnReading for uplinks, OnEvent for other frames.
func triggerOf(f *decoders.Frame) Trigger {
	if f.Kind == decoders.Uplink {
		return OnReading
	}
	return OnEvent
}

func newRuleFrame(f *iot.StoredFrame, zone *time.Location) *ruleFrame {
	frame := &ruleFrame{
		record: f.RecordID, device: f.Device, frameAt: f.Time, heardAt: f.Heard, trigger: triggerOf(f.Frame), fromDevice: iot.FromDevice(f.Frame.Kind), points: f.Points, radio: f.Radio, trace: f.Trace,
	}
	if frame.trigger == OnEvent {
		frame.event = eventOf(f.Frame)
	}
	frame.prepare(zone)
	return frame
}

// prepare sets the condition subject.
func (f *ruleFrame) prepare(zone *time.Location) {
	f.conditionSubject = newConditionSubject(f.device, f.heardAt, f.frameAt, zone, f.radio)
	f.conditionSubject.Values, f.conditionSubject.Previous, f.conditionSubject.Event = conditionValues(f.points), conditionValues(f.previous), f.event
}

// newConditionSubject returns a subject with the fields of device and uplink. radio may be nil.
func newConditionSubject(d *iot.Device, lastSeen, t time.Time, zone *time.Location, radio *iot.RadioData) condition.Subject {
	s := condition.Subject{
		FrameTime: t.In(zone),
		Device: condition.Device{
			ID: d.ID, Identifier: d.Identifier, Name: d.Name, DecoderID: d.DecoderID, LocationID: d.LocationID,
			LastSeenAt: lastSeen, Longitude: d.Longitude, Latitude: d.Latitude,
		},
		Uplink: condition.Uplink{Time: t},
	}
	if radio != nil {
		s.Uplink = condition.Uplink{FCnt: radio.FCnt, FPort: radio.FPort, Gateways: radio.Gateways, RSSI: radio.RSSI, SNR: radio.SNR, Time: t}
	}
	return s
}

// newest returns the newest point of each key.
func newest(points []iot.Point) map[string]*iot.Point {
	newestPoints := make(map[string]*iot.Point, len(points))
	for i := range points {
		p := &points[i]
		if current := newestPoints[p.Key]; current == nil || p.Time.After(current.Time) {
			newestPoints[p.Key] = p
		}
	}
	return newestPoints
}

func conditionValues(points []iot.Point) map[string]any {
	if len(points) == 0 {
		return nil
	}
	values := make(map[string]any, len(points))
	for i := range points {
		setValue(values, &points[i])
	}
	if len(values) == len(points) {
		return values // no key occurs twice
	}
	for _, p := range newest(points) {
		setValue(values, p)
	}
	return values
}

func setValue(values map[string]any, p *iot.Point) {
	if p.IsText {
		values[p.Key] = p.Text
	} else {
		values[p.Key] = p.Value
	}
}

func valuesOf(points []iot.Point, types map[string]iot.SensorType) map[string]Value {
	if len(points) == 0 {
		return nil
	}
	values := make(map[string]Value, len(points))
	for key, p := range newest(points) {
		values[key] = Value{Value: p.Value, Text: p.Text, IsText: p.IsText, Units: types[p.Type].MetricUnits}
	}
	return values
}

// eventOf returns the values of an event for expressions: its type and its data.
func eventOf(f *decoders.Frame) map[string]any {
	values := map[string]any{"type": string(f.Kind)}
	for key, v := range f.Object {
		if _, exists := values[key]; !exists {
			values[key] = v
		}
	}
	if f.Text != "" {
		values["text"] = strings.ToValidUTF8(f.Text, "\ufffd")
	}
	for key, v := range map[string]*float64{"battery": f.Battery, "margin": f.Margin} {
		if v != nil {
			values[key] = *v
		}
	}
	if p := f.Position; p != nil {
		values["latitude"], values["longitude"] = p.Latitude, p.Longitude
	}
	return values
}

func (f *ruleFrame) occurrence(p *Program, state State) Occurrence {
	o := Occurrence{
		Rule: &p.Rule, State: state, Device: *f.device, Record: f.record, Time: f.frameAt,
		Readings: valuesOf(f.points, f.types), Radio: f.radio, Event: maps.Clone(f.event), Trace: f.trace,
	}
	if f.fromDevice {
		o.Device.LastSeen = f.heardAt
	}
	if p.previous {
		o.Previous = valuesOf(f.previous, f.types)
	}
	return o
}
