package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

func (c *checker) rules(a *Account, at string) {
	for i := range a.Rules {
		r := &a.Rules[i]
		path := fmt.Sprintf("%srules[%d].", at, i)
		c.claim(at+"rule", r.ID, path+"id")
		if r.Enabled == nil {
			enabled := true
			r.Enabled = &enabled
		}
		c.ruleTimes(r, path)
		c.ruleDevices(a, r.Devices, path+"devices.")
		for j, action := range r.Actions {
			c.ruleAction(action, fmt.Sprintf("%sactions[%d].", path, j))
		}
		c.compiledRule(*r, path)
	}
}

// ruleDevices checks that the decoder and the location of a rule exist. Devices are not
// checked: they come and go over REST and with frames, and no document declares them.
func (c *checker) ruleDevices(a *Account, d RuleDevices, at string) {
	standing := c.standing.account(*a)
	var decoders, locations []string
	for _, one := range slices.Concat(a.Decoders, standing.Decoders) {
		decoders = append(decoders, one.ID)
	}
	for _, one := range slices.Concat(a.Locations, standing.Locations) {
		locations = append(locations, one.ID)
	}
	if d.DecoderID != "" && !slices.Contains(decoders, d.DecoderID) && !c.hasDecoder(*a, d.DecoderID) {
		c.mistakes.Add(at+"decoder_id", "expected the id of a decoder of this account%s, got %q", meant(d.DecoderID, decoders), clipValue(d.DecoderID))
	}
	if d.LocationID != "" && !slices.Contains(locations, d.LocationID) {
		c.mistakes.Add(at+"location_id", "expected the id of a location of this account%s, got %q", meant(d.LocationID, locations), clipValue(d.LocationID))
	}
}

// hasDecoder reports whether an account has a decoder that no document declares. One that
// an earlier document declared, and that does not stand, is about to be pruned.
func (c *checker) hasDecoder(a Account, id string) bool {
	pruned := slices.ContainsFunc(c.known.account(a).Decoders, func(d Decoder) bool { return d.ID == id })
	if pruned || c.HasDecoder == nil || c.failed != nil {
		return false
	}
	has, err := c.HasDecoder(a, id)
	c.failed = err
	return has
}

// ruleTimes checks the durations of a rule and fills in its repeat.
func (c *checker) ruleTimes(r *Rule, at string) {
	for name, d := range map[string]Duration{"for": r.For, "silent_for": r.SilentFor, "batch.every": r.Batch.Every} {
		c.mistakes.AddIf(d < 0, at+name, "expected a duration such as 10m, got %s", time.Duration(d))
	}
	c.mistakes.AddIf(r.Batch.Count < 0, at+"batch.count", "expected 1 or more, got %d", r.Batch.Count)
	r.Repeat = cmp.Or(r.Repeat, "never")
}

// ruleAction checks the shape of an action; CheckRule knows what it takes.
func (c *checker) ruleAction(a RuleAction, at string) {
	if a.Action != "http_get" && a.Action != "http_post" {
		return
	}
	for i, p := range a.Parameters {
		c.origin(p, fmt.Sprintf("%sparameters[%d]", at, i))
	}
}

// compiledRule adds the mistakes that are found when a rule is compiled.
func (c *checker) compiledRule(r Rule, at string) {
	if c.CheckRule == nil {
		return
	}
	found := c.CheckRule(r)
	for _, field := range slices.Sorted(maps.Keys(found)) {
		for _, problem := range found[field] {
			c.mistakes.Add(at+field, "%s", problem)
		}
	}
}
