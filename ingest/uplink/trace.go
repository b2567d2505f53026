package uplink

import (
	"fmt"
	"strconv"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
)

// maxTraced is how many readings of a frame a trace names individually.
const maxTraced = 20

// Sender says in a trace who posted, and what was recognised in the post.
func Sender(source string, frames int) inbound.Step {
	text := "as a post of " + source + " with "
	switch frames {
	case 0:
		text += "no frame that is read"
	case 1:
		text += "1 frame"
	default:
		text += strconv.Itoa(frames) + " frames"
	}
	return inbound.Step{Name: "recognised", Text: text}
}

// Steps explains how a frame is read and stored: its device, what it repeats, its
// decoder, each reading, and when the readings are. It compares with what is
// stored, so that a trace of a frame that is not yet replayed says what differs.
func Steps(f *iot.PreviewedFrame, types map[string]iot.SensorType) []inbound.Step {
	t := frameSteps{f: f, types: types}
	t.device()
	switch {
	case f.Duplicate:
		t.add("duplicate", "the same frame as event "+eventOf(f.Repeats)+", which was stored; this one is dropped")
		return t.out
	case f.Refused != "":
		t.add("refused", "nothing is stored: "+f.Refused)
		return t.out
	}
	if f.Kind != decoders.Uplink {
		t.add("decoder", "is not asked: only uplinks have readings, this is a frame of kind "+string(f.Kind))
		return t.out
	}
	t.decoder()
	if f.Note != "" {
		t.add("note", f.Note)
	}
	for _, lost := range f.Lost {
		t.add("refused", "the store refuses "+lost)
	}
	t.readings()
	return t.out
}

// frameSteps collects the steps of one frame.
type frameSteps struct {
	f     *iot.PreviewedFrame
	types map[string]iot.SensorType
	out   []inbound.Step
}

func (t *frameSteps) add(name, text string) {
	t.out = append(t.out, inbound.Step{Name: name, Text: text})
}

func (t *frameSteps) device() {
	switch d := t.f.Device; {
	case d.ID != "" && d.Name != "" && d.Name != d.Identifier:
		t.add("device", fmt.Sprintf("%s is the device %s, %q", t.f.Identifier, d.ID, d.Name))
	case d.ID != "":
		t.add("device", t.f.Identifier+" is the device "+d.ID)
	case d.Identifier != "":
		t.add("device", t.f.Identifier+" is not known; a frame would create it")
	}
}

func (t *frameSteps) decoder() {
	d := t.f.Decoder
	if d.ID == "" {
		t.add("decoder", "the device has none; values are read as the network server decoded them")
		return
	}
	t.add("decoder", fmt.Sprintf("%s, %q, codec %s", d.ID, d.Name, d.Codec))
}

// readings adds each reading with its value, and where they are stored.
func (t *frameSteps) readings() {
	stored := 0
	var at time.Time
	for i := range t.f.Readings {
		r := &t.f.Readings[i]
		if r.Effect == iot.Unchanged || r.Effect == iot.Changed || r.Effect == iot.Stays {
			stored++
		}
		if r.New != nil {
			at = r.Time
		}
		if i < maxTraced {
			t.add("reading", t.reading(r))
		}
	}
	n := len(t.f.Readings)
	if n > maxTraced {
		t.add("reading", fmt.Sprintf("and %d more", n-maxTraced))
	}
	switch {
	case n == 0:
		t.add("stored", "no readings: no sensor takes a value of this frame")
	case stored == 0:
		t.add("stored", "none of its readings is in the store")
	default:
		if at.IsZero() {
			at = t.f.Time
		}
		t.out = append(t.out, inbound.Step{At: at, Name: "stored", Text: fmt.Sprintf("readings in the store under this time of the frame: %d of %d", stored, n)})
	}
}

// reading describes one reading against what is stored.
func (t *frameSteps) reading(r *iot.Difference) string {
	shown := r.New
	if shown == nil {
		shown = r.Old
	}
	text := r.Key + " = " + t.value(shown)
	if r.SensorTypeID != "" && r.SensorTypeID != r.Key {
		text += " (" + r.SensorTypeID + ")"
	}
	switch r.Effect {
	case iot.Added:
		return text + "; not in the store: a replay would add it"
	case iot.Changed:
		return text + "; the store has " + t.value(r.Old) + ": a replay would change it"
	case iot.Stays:
		return text + "; in the store, and no longer in the frame as it is decoded now"
	default:
		return text
	}
}

func (t *frameSteps) value(p *iot.Point) string {
	if p.IsText {
		return strconv.Quote(p.Text)
	}
	text := formatNumber(p.Value)
	if units := t.types[p.Type].MetricUnits; units != "" {
		text += " " + units
	}
	return text
}
