package inventory

import (
	"fmt"
	"maps"
	"slices"

	"github.com/penstock/penstock/config/strict"
)

// The longest sources, in bytes, that the decoders take.
const (
	maxExpr       = 4 << 10
	maxJavaScript = 1 << 20
)

func (c *checker) decoders(a *Account, at string) {
	for i := range a.Decoders {
		d := &a.Decoders[i]
		path := fmt.Sprintf("%sdecoders[%d].", at, i)
		c.claim(at+"decoder", d.ID, path+"id")
		c.codec(d, path)
		c.mappings(d, path)
	}
}

func (c *checker) codec(d *Decoder, at string) {
	if d.Codec == "" {
		d.Codec = "json"
	}
	most, script := map[string]int{"expr": maxExpr, "javascript": maxJavaScript}[d.Codec]
	switch {
	case !script && d.Source != "":
		c.mistakes.Add(at+"source", "expected none for the codec %s", clipValue(d.Codec))
	case script && d.Source == "":
		c.mistakes.Add(at+"source", "expected a source for the codec %s", d.Codec)
	case script && len(d.Source) > most:
		c.mistakes.Add(at+"source", "expected at most %d bytes, got %d", most, len(d.Source))
	case script && c.CheckSource != nil:
		if err := c.CheckSource(d.Codec, d.Source); err != nil {
			c.mistakes.Add(at+"source", "expected a source that compiles: %s", err)
		}
	}
}

func (c *checker) mappings(d *Decoder, at string) {
	types := slices.Collect(maps.Keys(c.standing.types))
	for i, s := range d.Sensors {
		path := fmt.Sprintf("%ssensors[%d].", at, i)
		c.claim(at+"key", s.Key, path+"key")
		if !c.standing.types[s.SensorTypeID] {
			c.mistakes.Add(path+"sensor_type_id", "expected the id of a sensor type%s, got %q", meant(s.SensorTypeID, types), clipValue(s.SensorTypeID))
		}
	}
}

// meant suggests the known id that is nearest to another one.
func meant(id string, known []string) string {
	if near, ok := strict.Nearest(id, known); ok {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}
