package rule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/condition"
	"github.com/penstock/penstock/relay/iot"
)

// Limits of a rule.
const (
	maxName       = 255
	maxActions    = 10
	maxDeliveries = 100    // number of parameters of all actions together
	maxDevices    = 10_000 // number of Devices.IDs
	maxDuration   = 366 * 24 * time.Hour
	minSilence    = time.Minute
	maxBatch      = 1000
	maxBatchEvery = 24 * time.Hour
)

// Program is a compiled rule. It is safe for concurrent use.
type Program struct {
	Rule        Rule
	when, clear *condition.Rule // nil if the rule has no such condition
	actions     *actions
	previous    bool // a condition or a body examines the previous readings
	selected    selection
}

// Compile checks and compiles a rule. It returns relay.KindInvalid with the invalid fields, such as
// "when", "clear" or "actions[1].body". Problems of expressions have the line and the column.
func Compile(r *Rule) (*Program, error) {
	p := relay.Problems{}
	r.check(p)
	program := &Program{Rule: *r, selected: newSelection(r.Devices)}
	program.when = compileCondition(p, "when", r.When)
	program.clear = compileCondition(p, "clear", r.Clear)
	if err := p.Err(); err != nil {
		return nil, err
	}
	var conditionKeys []string
	for _, c := range []*condition.Rule{program.when, program.clear} {
		if c != nil {
			conditionKeys = append(conditionKeys, c.Keys()...)
			program.previous = program.previous || c.UsesPrevious()
		}
	}
	slices.Sort(conditionKeys)
	var err error
	if program.actions, err = compileActions(r, slices.Compact(conditionKeys)); err != nil {
		return nil, err
	}
	program.previous = program.previous || slices.ContainsFunc(program.actions.actions, func(a action) bool {
		return a.body != nil && a.body.UsesPrevious()
	})
	return program, nil
}

func compileCondition(p relay.Problems, field, source string) *condition.Rule {
	if source == "" {
		return nil
	}
	c, err := condition.CompileRule(source)
	if err != nil {
		p.Add(field, err.Error())
	}
	return c
}

func (r *Rule) check(p relay.Problems) {
	// 1. The name, the devices and the number of actions.
	p.Require("name", r.Name)
	p.Limit("name", r.Name, maxName)
	p.Limit("devices.name", r.Devices.Name, maxName)
	if len(r.Devices.IDs) > maxDevices {
		p.Add("devices.ids", fmt.Sprintf("A rule must not list more than %d devices.", maxDevices))
	}
	if n := len(r.Actions); n == 0 || n > maxActions {
		p.Add("actions", fmt.Sprintf("A rule must have between 1 and %d actions.", maxActions))
	}
	if r.fanOut() > maxDeliveries {
		p.Add("actions", fmt.Sprintf("The actions of a rule must not have more than %d parameters together.", maxDeliveries))
	}

	// 2. The fields that depend on the trigger. refuseSet adds a problem for each field that is set.
	refuseSet := func(fields map[string]bool, format string) {
		for field, set := range fields {
			if set {
				p.Add(field, fmt.Sprintf(format, field))
			}
		}
	}
	switch r.On {
	case OnReading, OnEvent:
		refuseSet(map[string]bool{"silent_for": r.SilentFor != 0}, "The %s is only for rules on silent.")
		if r.For < 0 || r.For > maxDuration {
			p.Add("for", "The for must be between 0 and 366 days.")
		}
		if r.When == "" {
			refuseSet(map[string]bool{"clear": r.Clear != "", "for": r.For != 0, "repeat": r.Repeat != Repeat{}}, "The %s needs a when.")
		}
	case OnSilent:
		if r.SilentFor < minSilence || r.SilentFor > maxDuration {
			p.Add("silent_for", "The silent_for must be between 1 minute and 366 days.")
		}
		refuseSet(map[string]bool{"when": r.When != "", "clear": r.Clear != "", "for": r.For != 0}, "A rule on silent must not have a %s.")
		if r.Repeat.Always {
			p.Add("repeat", "The repeat of a rule on silent must be never or a duration.")
		}
	default:
		p.Add("on", "on must be reading, silent or event.")
	}
	if every := r.Repeat.Every; every < 0 || every > maxDuration || every != 0 && every < time.Second {
		p.Add("repeat", "The repeat must be never, always or a duration between 1 second and 366 days.")
	}

	// 3. The batch.
	if r.Batch != (Batch{}) && (r.When != "" || r.On == OnSilent) {
		p.Add("batch", "The batch is only for rules without a when.")
	}
	if r.Batch.Count < 0 || r.Batch.Count > maxBatch {
		p.Add("batch.count", fmt.Sprintf("The count must be between 1 and %d.", maxBatch))
	}
	if r.Batch.Every < 0 || r.Batch.Every > maxBatchEvery {
		p.Add("batch.every", "The every must be between 0 and 24 hours.")
	}
}

// fanOut returns the number of deliveries of one firing of the rule.
func (r *Rule) fanOut() (n int) {
	for _, a := range r.Actions {
		n += len(a.Parameters)
	}
	return n
}

// forwards reports whether the rule forwards frames instead of raising alarms.
func (p *Program) forwards() bool { return p.when == nil && p.Rule.On != OnSilent }

// keys returns the keys of readings that the conditions and bodies examine, sorted.
func (p *Program) keys() []string {
	keys := slices.Clone(p.actions.conditionKeys)
	for _, a := range p.actions.actions {
		if a.body != nil {
			keys = append(keys, a.body.Keys()...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// resetsStates reports whether a change of a rule deletes the rule's states, because they are
// meaningless for the new rule.
func resetsStates(oldRule, newRule Rule) bool {
	return oldRule.Enabled && !newRule.Enabled || oldRule.On != newRule.On || oldRule.When != newRule.When || oldRule.Clear != newRule.Clear ||
		oldRule.For != newRule.For || oldRule.SilentFor != newRule.SilentFor || !slices.Equal(oldRule.Devices.IDs, newRule.Devices.IDs) ||
		oldRule.Devices.DecoderID != newRule.Devices.DecoderID || oldRule.Devices.LocationID != newRule.Devices.LocationID || oldRule.Devices.Name != newRule.Devices.Name
}

type selection struct {
	Devices
	ids  map[string]bool // nil selects all
	name pattern
}

func newSelection(d Devices) selection {
	s := selection{Devices: d, name: newPattern(d.Name)}
	if len(d.IDs) > 0 {
		s.ids = make(map[string]bool, len(d.IDs))
		for _, id := range d.IDs {
			s.ids[id] = true
		}
	}
	return s
}

func (s *selection) includes(d *iot.Device) bool {
	return (s.ids == nil || s.ids[d.ID]) &&
		(s.DecoderID == "" || s.DecoderID == d.DecoderID) &&
		(s.LocationID == "" || s.LocationID == d.LocationID) &&
		(s.Name == "" || s.name.matches(d.Name))
}

// pattern has the parts of a text in which * stands for any characters.
type pattern []string

func newPattern(text string) pattern { return strings.Split(text, "*") }

// matches reports whether the pattern matches a text, in time linear in the lengths of both.
func (p pattern) matches(text string) bool {
	lastPart := len(p) - 1
	if lastPart == 0 {
		return text == p[0]
	}
	text, ok := strings.CutPrefix(text, p[0])
	if ok {
		text, ok = strings.CutSuffix(text, p[lastPart])
	}
	for _, part := range p[1:lastPart] {
		if ok {
			_, text, ok = strings.Cut(text, part)
		}
	}
	return ok
}

// truth is the result of a condition for a frame.
type truth int

const (
	unknown truth = iota // the condition examines a missing value
	yes
	no
)

// evaluate evaluates a condition of a rule, when or clear, and returns the result with its reason. An
// error is a failure of the expression.
func evaluate(name string, c *condition.Rule, s *condition.Subject) (holds truth, reason string, err error) {
	phrase := map[string]string{"when": "the condition", "clear": "the condition for clearing"}[name]
	result, err := c.Holds(s)
	switch {
	case err != nil:
		reason := phrase + " cannot be evaluated, because " + err.Error()
		if _, missing := errors.AsType[*condition.MissingKey](err); missing {
			return unknown, reason, nil
		}
		return unknown, phrase + " fails: " + err.Error(), fmt.Errorf("%s: %w", name, err)
	case result:
		return yes, phrase + " is met", nil
	}
	return no, phrase + " is not met", nil
}
