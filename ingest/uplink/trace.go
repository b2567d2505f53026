package uplink

import (
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
	text := "as a post of " + source + " with "
	switch frames {
	case 0:
		text += "no frames"
	case 1:
		text += "1 frame"
	default:
		text += strconv.Itoa(frames) + " frames"
	}
	return inbound.Step{Name: "recognised", Text: text}
}

// Steps returns the steps of processing a frame: its device, a duplicate, its decoder, each reading
// and the time of the readings. It compares readings with stored ones, so that a trace before a
// replay has the differences.
func Steps(f *iot.PreviewedFrame, types map[string]iot.SensorType) []inbound.Step {
	s := frameSteps{frame: f, types: types}
	s.device()
	switch {
	case f.Duplicate:
		s.add("duplicate", "the same frame as event "+eventOf(f.Repeats)+", which came first; this one is dropped")
		s.notes()
		return s.steps
	case f.Refused != "":
		s.add("refused", "nothing is stored: "+f.Refused)
		s.notes()
		return s.steps
	}
	if f.Kind != decoders.Uplink {
		s.add("decoder", "not used: only uplinks have readings, and this frame is of kind "+string(f.Kind))
		s.notes()
		return s.steps
	}
	if d := f.Decoder; d.ID == "" {
		s.add("decoder", "the device has none; nothing is decoded")
	} else {
		s.add("decoder", fmt.Sprintf("%s, %q, codec %s", d.ID, d.Name, d.Codec))
	}
	s.notes()
	for _, lost := range f.Lost {
		s.add("refused", "the store refuses "+lost)
	}
	s.readings()
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

func (s *frameSteps) notes() {
	for _, note := range s.frame.Notes {
		s.add("note", note)
	}
}

func (s *frameSteps) device() {
	switch d := s.frame.Device; {
	case d.ID != "" && d.Name != "" && d.Name != d.Identifier:
		s.add("device", fmt.Sprintf("%s is the device %s, %q", s.frame.Identifier, d.ID, d.Name))
	case d.ID != "":
		s.add("device", s.frame.Identifier+" is the device "+d.ID)
	case d.Identifier != "":
		s.add("device", s.frame.Identifier+" is unknown; a frame would create it")
	}
}

// readings adds the readings with their values, and the number of stored ones.
func (s *frameSteps) readings() {
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
		s.add("reading", fmt.Sprintf("and %d more", n-maxTraced))
	}
	switch {
	case n == 0:
		s.add("stored", "no readings: no sensor uses a value of this frame")
	case stored == 0:
		s.add("stored", "the store has none of its readings")
	default:
		if sampleTime.IsZero() {
			sampleTime = s.frame.Time
		}
		s.steps = append(s.steps, inbound.Step{At: sampleTime, Name: "stored", Text: fmt.Sprintf("the store has %d of %d readings, at this time of the frame", stored, n)})
	}
}

// reading describes a reading and its difference from the stored one.
func (s *frameSteps) reading(r *iot.Difference) string {
	point := r.New
	if point == nil {
		point = r.Old
	}
	text := r.Key + " = " + s.value(point)
	if r.SensorTypeID != "" && r.SensorTypeID != r.Key {
		text += " (" + r.SensorTypeID + ")"
	}
	switch r.Effect {
	case iot.Added:
		return text + "; not in the store: a replay would add it"
	case iot.Changed:
		return text + "; the store has " + s.value(r.Old) + ": a replay would change it"
	case iot.Retained:
		return text + "; in the store, but the decoder no longer returns it"
	default:
		return text
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
