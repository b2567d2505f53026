package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/penstock/penstock/config/strict"
)

// The largest sources of decoders in bytes.
const (
	maxExpr       = 4 << 10
	maxJavaScript = 1 << 20
)

func (c *checker) decoder(d *Decoder, accountPath, prefix string) {
	c.claim(accountPath+"decoder", d.ID, prefix+"id")
	d.Codec = cmp.Or(d.Codec, "json")
	maxBytes, isScript := map[string]int{"expr": maxExpr, "javascript": maxJavaScript}[d.Codec]
	switch {
	case !isScript && d.Source != "":
		c.mistakes.Add(prefix+"source", "expected none for the codec %s", clipValue(d.Codec))
	case isScript && d.Source == "":
		c.mistakes.Add(prefix+"source", "expected a source for the codec %s", d.Codec)
	case isScript && len(d.Source) > maxBytes:
		c.mistakes.Add(prefix+"source", "expected at most %d bytes, got %d", maxBytes, len(d.Source))
	case isScript && c.CheckSource != nil:
		if err := c.CheckSource(d.Codec, d.Source); err != nil {
			c.mistakes.Add(prefix+"source", "expected a source that compiles: %s", err)
		}
	}
	for i, s := range d.Sensors {
		path := fmt.Sprintf("%ssensors[%d].", prefix, i)
		c.claim(prefix+"key", s.Key, path+"key")
		if !slices.Contains(c.sensorTypeIDs, s.SensorTypeID) {
			c.unknownID(s.SensorTypeID, "sensor type declared in an inventory", c.sensorTypeIDs, path+"sensor_type_id")
		}
	}
}

// unknownID adds a mistake for the id of a missing record, and suggests a similar id.
func (c *checker) unknownID(id, kind string, ids []string, path string) {
	suggestion := ""
	if nearest, ok := strict.Nearest(id, ids); ok {
		suggestion = fmt.Sprintf(" (did you mean %q?)", nearest)
	}
	c.mistakes.Add(path, "expected the id of a %s%s, got %q", kind, suggestion, clipValue(id))
}

// rule checks a rule and fills in its defaults. It does not check the ids of devices, which
// the REST API and frames create and no document declares.
func (c *checker) rule(a *Account, r *Rule, accountPath, path string) {
	c.claim(accountPath+"rule", r.ID, path+"id")
	enabled := true
	r.Enabled, r.Repeat = cmp.Or(r.Enabled, &enabled), cmp.Or(r.Repeat, "never")
	for name, d := range map[string]Duration{"for": r.For, "silent_for": r.SilentFor, "batch.every": r.Batch.Every} {
		c.mistakes.AddIf(d < 0, path+name, "expected a duration such as 10m, got %s", time.Duration(d))
	}
	c.mistakes.AddIf(r.Batch.Count < 0, path+"batch.count", "expected 1 or more, got %d", r.Batch.Count)
	remaining := c.remaining.account(*a)
	var decoders, locations []string
	for _, d := range slices.Concat(a.Decoders, remaining.Decoders) {
		decoders = append(decoders, d.ID)
	}
	for _, l := range slices.Concat(a.Locations, remaining.Locations) {
		locations = append(locations, l.ID)
	}
	if id := r.Devices.DecoderID; id != "" && !slices.Contains(decoders, id) && !c.hasDecoder(*a, id) {
		c.unknownID(id, "decoder of this account", decoders, path+"devices.decoder_id")
	}
	if id := r.Devices.LocationID; id != "" && !slices.Contains(locations, id) {
		c.unknownID(id, "location of this account", locations, path+"devices.location_id")
	}
	for i, action := range r.Actions { // CheckRule checks the parameters of other actions
		if action.Action == "http_get" || action.Action == "http_post" {
			for j, p := range action.Parameters {
				c.origin(p, fmt.Sprintf("%sactions[%d].parameters[%d]", path, i, j))
			}
		}
	}
	if c.CheckRule == nil {
		return
	}
	problems := c.CheckRule(*r)
	for _, field := range slices.Sorted(maps.Keys(problems)) {
		for _, problem := range problems[field] {
			c.mistakes.Add(path+field, "%s", problem)
		}
	}
}

// hasDecoder reports whether an account has a decoder that no document declares. A decoder of
// an earlier document that is not among the remaining ones is about to be pruned.
func (c *checker) hasDecoder(a Account, id string) bool {
	pruned := slices.ContainsFunc(c.known.account(a).Decoders, func(d Decoder) bool { return d.ID == id })
	if pruned || c.HasDecoder == nil || c.decoderErr != nil {
		return false
	}
	ok, err := c.HasDecoder(a, id)
	c.decoderErr = err
	return ok
}
