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
		for j, action := range r.Actions {
			c.ruleAction(action, fmt.Sprintf("%sactions[%d].", path, j))
		}
		c.compiledRule(*r, path)
	}
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
