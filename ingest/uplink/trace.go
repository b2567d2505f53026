package uplink

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
)

// maxTraced is the maximum number of readings of a frame that a trace lists individually.
const maxTraced = 20

// SenderStep returns the step of a trace for the sender of a post.
func SenderStep(source string, frames int) inbound.Step {
	return inbound.Step{Name: "recognised", Text: fmt.Sprintf("The sender is %s; the request has %s.", source, counted(frames, "frame"))}
}

// counted returns a number with its noun, "no frames" for 0.
func counted(n int, noun string) string {
	switch n {
	case 0:
		return "no " + noun + "s"
	case 1:
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Steps returns the steps of processing a frame: its device, a duplicate, its decoder, each reading
// and the time of the readings. It compares the readings with the stored ones, so that a trace
// shows what a replay would change.
func Steps(f *iot.PreviewedFrame, types map[string]iot.SensorType) []inbound.Step {
	s := frameSteps{frame: f, types: types}
	s.addDevice()
	switch {
	case f.Duplicate:
		s.add("duplicate", "The frame was received before as the event "+eventOf(f.Repeats)+", so it is dropped.")
		s.addNotes()
		return s.steps
	case f.Refused != "":
		s.add("refused", "No readings are stored: "+f.Refused+".")
		s.addNotes()
		return s.steps
	}
	if f.Kind != decoders.Uplink {
		s.add("decoder", "No decoder is used, because only uplinks have readings.")
		s.addNotes()
		return s.steps
	}
	if d := f.Decoder; d.ID == "" {
		s.add("decoder", "The device has no decoder, so nothing is decoded.")
	} else {
		s.add("decoder", fmt.Sprintf("The decoder %q decodes the frame.", cmp.Or(d.Name, d.ID)))
	}
	s.addNotes()
	for _, lost := range f.Lost {
		s.add("refused", "A value is not stored: "+lost+".")
	}
	s.addReadings()
	return s.steps
}

// frameSteps collects the steps of a frame.
type frameSteps struct {
	frame *iot.PreviewedFrame
	types map[string]iot.SensorType
	steps []inbound.Step
}

func (s *frameSteps) add(name, text string) {
	s.steps = append(s.steps, inbound.Step{Name: name, Text: text})
}

func (s *frameSteps) addNotes() {
	for _, note := range s.frame.Notes {
		s.add("note", note)
	}
}

func (s *frameSteps) addDevice() {
	switch d := s.frame.Device; {
	case d.ID != "" && cmp.Or(d.Name, d.Identifier) == s.frame.Identifier:
	case d.ID != "":
		s.add("device", fmt.Sprintf("The device %q has the identifier %s.", cmp.Or(d.Name, d.Identifier), s.frame.Identifier))
	case d.Identifier != "":
		s.add("device", "The device "+s.frame.Identifier+" is unknown. A replay creates it.")
	}
}

// addReadings adds the readings with their values, and the number of stored ones.
func (s *frameSteps) addReadings() {
	stored := 0
	var sampleTime time.Time
	for i := range s.frame.Readings {
		r := &s.frame.Readings[i]
		if r.Effect == iot.Unchanged || r.Effect == iot.Changed || r.Effect == iot.Retained {
			stored++
		}
		if r.New != nil {
			sampleTime = r.Time
		}
		if i < maxTraced {
			s.add("reading", s.reading(r))
		}
	}
	n := len(s.frame.Readings)
	if n > maxTraced {
		s.add("reading", fmt.Sprintf("%d more readings are not listed.", n-maxTraced))
	}
	switch {
	case n == 0:
		s.add("stored", "No readings are stored, because no sensor uses a value of this frame.")
	case stored == 0:
		s.add("stored", "None of the readings are stored.")
	default:
		text := "Readings stored with the frame's time."
		if stored < n {
			text = fmt.Sprintf("%d of %d readings stored with the frame's time.", stored, n)
		}
		s.steps = append(s.steps, inbound.Step{At: cmp.Or(sampleTime, s.frame.Time), Name: "stored", Text: text})
	}
}

// reading describes a reading and its difference from the stored one.
func (s *frameSteps) reading(r *iot.Difference) string {
	point := r.New
	if point == nil {
		point = r.Old
	}
	name := cmp.Or(s.types[r.SensorTypeID].Name, r.SensorTypeID, r.Key)
	if r.SensorTypeID != "" && r.SensorTypeID != r.Key {
		name = r.Key + " (" + name + ")"
	}
	text := name + " " + s.value(point)
	switch r.Effect {
	case iot.Added:
		return text + ". It is not stored; a replay adds it."
	case iot.Changed:
		return text + ". The stored value is " + s.value(r.Old) + "; a replay changes it."
	case iot.Retained:
		return text + " is stored. The decoder no longer returns it; a replay keeps it."
	default:
		return text + "."
	}
}

func (s *frameSteps) value(p *iot.Point) string {
	if p.IsText {
		return strconv.Quote(p.Text)
	}
	text := formatNumber(p.Value)
	if units := s.types[p.Type].MetricUnits; units != "" {
		text += " " + units
	}
	return text
}
