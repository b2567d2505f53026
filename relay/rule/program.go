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
	maxDeliveries = 100    // parameters of all actions together
	maxDevices    = 10_000 // ids that a rule names
	maxDuration   = 366 * 24 * time.Hour
	minSilence    = time.Minute
	maxBatch      = 1000
	maxBatchEvery = 24 * time.Hour
)

// Program is a compiled rule. It is safe for concurrent use.
type Program struct {
	Rule        Rule
	rule, clear *condition.Rule // nil without a condition
	actions     *actions
	previous    bool // a condition or a body looks at the readings before
	selected    selection
}

// Compile checks and compiles a rule. It returns relay.KindInvalid with the fields
// that are wrong: "when", "clear", "actions[1].body" …; of a condition with line and
// column.
func Compile(r *Rule) (*Program, error) {
	p := relay.Problems{}
	r.check(p)
	program := &Program{Rule: *r, selected: newSelection(r.Devices)}
	program.rule = compileCondition(p, "when", r.When)
	program.clear = compileCondition(p, "clear", r.Clear)
	if err := p.Err(); err != nil {
		return nil, err
	}
	var named []string
	for _, c := range []*condition.Rule{program.rule, program.clear} {
		if c != nil {
			named = append(named, c.Keys()...)
			program.previous = program.previous || c.UsesPrevious()
		}
	}
	slices.Sort(named)
	var err error
	if program.actions, err = compileActions(r, slices.Compact(named)); err != nil {
		return nil, err
	}
	program.previous = program.previous || program.actions.usesPrevious()
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

// check adds the problems of the fields other than expressions and actions.
func (r *Rule) check(p relay.Problems) {
	p.Require("name", r.Name)
	p.Limit("name", r.Name, maxName)
	switch r.On {
	case OnReading, OnEvent:
		r.checkConditional(p)
	case OnSilent:
		r.checkSilent(p)
	default:
		p.Add("on", "The on must be reading, silent or event.")
	}
	r.checkBatch(p)
	if r.fanOut() > maxDeliveries {
		p.Add("actions", fmt.Sprintf("The actions of a rule have at most %d parameters together.", maxDeliveries))
	}
	p.Limit("devices.name", r.Devices.Name, maxName)
	if len(r.Devices.IDs) > maxDevices {
		p.Add("devices.ids", fmt.Sprintf("The devices must not be more than %d.", maxDevices))
	}
	if n := len(r.Actions); n == 0 || n > maxActions {
		p.Add("actions", fmt.Sprintf("A rule has between 1 and %d actions.", maxActions))
	}
}

// checkConditional checks a rule that looks at frames.
func (r *Rule) checkConditional(p relay.Problems) {
	if r.SilentFor != 0 {
		p.Add("silent_for", "The silent_for is for rules on silent.")
	}
	if r.For < 0 || r.For > maxDuration {
		p.Add("for", "The for must be between 0 and 366 days.")
	}
	checkRepeat(p, r.Repeat)
	if r.When != "" {
		return
	}
	for field, set := range map[string]bool{"clear": r.Clear != "", "for": r.For != 0, "repeat": r.Repeat != Repeat{}} {
		if set {
			p.Add(field, "The "+field+" needs a when.")
		}
	}
}

// checkSilent checks a rule that looks for silence.
func (r *Rule) checkSilent(p relay.Problems) {
	if r.SilentFor < minSilence || r.SilentFor > maxDuration {
		p.Add("silent_for", "The silent_for must be between 1 minute and 366 days.")
	}
	for field, set := range map[string]bool{"when": r.When != "", "clear": r.Clear != "", "for": r.For != 0} {
		if set {
			p.Add(field, "A rule on silent has no "+field+".")
		}
	}
	if r.Repeat.Always {
		p.Add("repeat", "The repeat of a rule on silent must be never or a duration.")
	}
	checkRepeat(p, r.Repeat)
}

func checkRepeat(p relay.Problems, r Repeat) {
	if r.Every < 0 || r.Every > maxDuration || r.Every != 0 && r.Every < time.Second {
		p.Add("repeat", "The repeat must be never, always or a duration between 1 second and 366 days.")
	}
}

func (r *Rule) checkBatch(p relay.Problems) {
	b := r.Batch
	switch {
	case b == Batch{}:
		return
	case r.When != "" || r.On == OnSilent:
		p.Add("batch", "The batch is for rules without a when.")
	}
	if b.Count < 0 || b.Count > maxBatch {
		p.Add("batch.count", fmt.Sprintf("The count must be between 1 and %d.", maxBatch))
	}
	if b.Every < 0 || b.Every > maxBatchEvery {
		p.Add("batch.every", "The every must be between 0 and 24 hours.")
	}
}

// fanOut is how many deliveries the rule makes each time.
func (r *Rule) fanOut() (n int) {
	for _, a := range r.Actions {
		n += len(a.Parameters)
	}
	return n
}

// forwards reports whether the rule forwards frames instead of raising alarms.
func (p *Program) forwards() bool { return p.rule == nil && p.Rule.On != OnSilent }

// keys are the keys of readings that the rule names.
func (p *Program) keys() []string {
	keys := slices.Concat(p.actions.named, p.actions.keys())
	slices.Sort(keys)
	return slices.Compact(keys)
}

// startsAnew reports whether a change of a rule makes its states for devices
// meaningless, so that they are dropped.
func startsAnew(oldRule, newRule Rule) bool {
	return oldRule.Enabled && !newRule.Enabled || oldRule.On != newRule.On || oldRule.When != newRule.When || oldRule.Clear != newRule.Clear ||
		oldRule.For != newRule.For || oldRule.SilentFor != newRule.SilentFor || !slices.Equal(oldRule.Devices.IDs, newRule.Devices.IDs) ||
		oldRule.Devices.DecoderID != newRule.Devices.DecoderID || oldRule.Devices.LocationID != newRule.Devices.LocationID || oldRule.Devices.Name != newRule.Devices.Name
}

// selection is a compiled Devices.
type selection struct {
	Devices
	ids  map[string]bool // nil: any
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

// has reports whether a device is selected.
func (s *selection) includes(d *iot.Device) bool {
	return (s.ids == nil || s.ids[d.ID]) &&
		(s.DecoderID == "" || s.DecoderID == d.DecoderID) &&
		(s.LocationID == "" || s.LocationID == d.LocationID) &&
		(s.Name == "" || s.name.matches(d.Name))
}

// pattern is a text in which * stands for any characters.
type pattern struct {
	low, lastID string
	between     []string
	star        bool
}

func newPattern(text string) pattern {
	parts := strings.Split(text, "*")
	n := len(parts) - 1
	if n == 0 {
		return pattern{low: text}
	}
	return pattern{low: parts[0], between: parts[1:n], lastID: parts[n], star: true}
}

// matches reports whether a text fits the pattern, in time in proportion to both.
func (p *pattern) matches(text string) bool {
	text, ok := strings.CutPrefix(text, p.low)
	if !ok || !p.star {
		return ok && text == ""
	}
	text, ok = strings.CutSuffix(text, p.lastID)
	for _, part := range p.between {
		if !ok {
			break
		}
		_, text, ok = strings.Cut(text, part)
	}
	return ok
}

// holding is the result of a condition for a frame.
type holding int

const (
	unknown holding = iota // it looks at a value that is missing
	yes
	no
)

// question is a condition with its name and answers, which are made once.
type question struct {
	name, holds, not string
}

func (p *Program) askWhen(s *condition.Subject) (holding, string, error) {
	return question{"when", "when holds", "when does not hold"}.ask(p.rule, s)
}

func (p *Program) askClear(s *condition.Subject) (holding, string, error) {
	return question{"clear", "clear holds", "clear does not hold"}.ask(p.clear, s)
}

// ask evaluates a condition. An error is a fault of the expression.
func (q question) ask(c *condition.Rule, s *condition.Subject) (holding, string, error) {
	holds, err := c.Holds(s)
	if err != nil {
		reason := q.name + ": " + err.Error()
		if _, missing := errors.AsType[*condition.MissingKey](err); missing {
			return unknown, reason, nil
		}
		return unknown, reason, fmt.Errorf("%s: %w", q.name, err)
	}
	if holds {
		return yes, q.holds, nil
	}
	return no, q.not, nil
}
