package condition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"
	"github.com/expr-lang/expr/vm/runtime"

	"github.com/penstock/penstock/decoders"
)

// Rule is a compiled condition of a rule. It is safe for concurrent use.
type Rule struct{ ruleProgram }

// CompileRule checks and compiles a condition of a rule: an expression that is true or false for a
// frame.
//
//	values.temperature > 30 and hour >= 8
//	values["air.humidity"] - previous["air.humidity"] > 5
//	event.type == "join" or uplink.rssi < -115
//
// The expression can read values and previous (readings by key), device {id, identifier, name,
// decoder_id, location_id, last_seen_at, longitude, latitude}, uplink {f_cnt, f_port, rssi, snr,
// gateways, time}, event, hour, weekday (1 Monday to 7 Sunday) and now. It can call the functions of a
// Filter, and abs, ceil, floor, round, int, float, string, min, max and duration. A + with a text joins
// texts. The limits of a Filter apply. The error has the line and the column.
func CompileRule(source string) (*Rule, error) {
	rules := newRuleVisitor("condition", false)
	program, err := compileProgram(source, maxCondition, conditionNodes, rules, expr.AsBool())
	if err != nil {
		return nil, err
	}
	return &Rule{program}, nil
}

// Holds reports whether the condition is true for a frame. If it examines a missing value, the
// error is a *MissingKey; any other error is a fault of the expression.
func (r *Rule) Holds(s *Subject) (bool, error) {
	v, err := r.run(s, nil)
	holds, _ := v.(bool) // AsBool refuses other results
	return holds, err
}

type ruleProgram struct {
	code         *vm.Program
	slots        []slot
	machines     *sync.Pool // of *ruleMachine
	keys         []string
	usesPrevious bool
}

// Keys returns the keys of values and previous that the expression names, sorted.
func (p *ruleProgram) Keys() []string { return slices.Clone(p.keys) }

// UsesPrevious reports whether the expression examines previous.
func (p *ruleProgram) UsesPrevious() bool { return p.usesPrevious }

// slot is a value of the subject and the variables that are set to it. The optional variable may be
// nil. Without a value for the required variable, the expression is not run.
type slot struct {
	value              func(s *Subject) any
	required, optional string // empty if the code does not have the variable
	missing            error  // returned if the required variable has no value
}

type ruleMachine struct {
	vm  vm.VM
	env map[string]any
}

func compileProgram(source string, size int, nodes uint, rules *ruleVisitor, options ...expr.Option) (ruleProgram, error) {
	variables := usedVariables{}
	options = append(options,
		expr.Env(rules.nameTypes), expr.MaxNodes(nodes), expr.Patch(rules), expr.Patch(variables),
		expr.Function(joinName, join, new(func(any, any) any)),
		expr.Function(presentName, requirePresent, new(func(any, string) any)),
		expr.Function(textName, clipArgument, new(func(any) any)),
		expr.Function(stringName, scalarText, new(func(any) string)),
	)
	code, err := compileBounded(source, size, &rules.visitor, options...)
	if err != nil {
		return ruleProgram{}, err
	}
	for n := range rules.uncalled {
		rules.refuse(n, n.Value+" is a function")
		return ruleProgram{}, rules.refusal(source)
	}
	p := ruleProgram{code: code, usesPrevious: rules.usesPrevious || rules.bare[rootPrevious] > 0, machines: &sync.Pool{New: func() any {
		return &ruleMachine{vm: vm.VM{MemoryBudget: maxMemory}, env: map[string]any{}}
	}}}
	for _, name := range slices.Sorted(maps.Keys(rules.bare)) {
		if f, ok := rules.fields[name]; ok && rules.bare[name] > 0 {
			p.slots = append(p.slots, slot{value: f.value, optional: name})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rules.slots)) {
		s := slot{value: rules.slots[name].value, missing: &MissingKey{Name: name}}
		if variables[name] {
			s.required = name
		}
		if variables[optionalMark+name] {
			s.optional = optionalMark + name
		}
		p.slots = append(p.slots, s)
		if key := rules.slots[name].key; key != "" {
			p.keys = append(p.keys, key)
		}
	}
	slices.Sort(p.keys)
	p.keys = slices.Compact(p.keys)
	return p, nil
}

// run evaluates the expression. A machine is not reused after a failed run.
func (p *ruleProgram) run(s *Subject, extra map[string]any) (any, error) {
	m := p.machines.Get().(*ruleMachine)
	for i := range p.slots {
		slot := &p.slots[i]
		v := slot.value(s)
		if slot.required != "" {
			if v == nil {
				p.machines.Put(m)
				return nil, slot.missing
			}
			m.env[slot.required] = v
		}
		if slot.optional != "" {
			m.env[slot.optional] = v
		}
	}
	maps.Copy(m.env, extra)
	v, err := m.vm.Run(p.code, m.env)
	if err == nil {
		p.machines.Put(m)
		return v, nil
	}
	if missing, ok := errors.AsType[*MissingKey](err); ok {
		return nil, missing
	}
	if _, ok := errors.AsType[*file.Error](err); ok {
		return nil, locateError(err)
	}
	return nil, err
}

// requirePresent returns its first argument. If that argument is nil, it returns a MissingKey error with
// the name in the second argument.
func requirePresent(args ...any) (any, error) {
	if args[0] != nil {
		return args[0], nil
	}
	name, _ := args[1].(string)
	return nil, &MissingKey{Name: name}
}

// clipArgument clips a text before it is matched with a pattern.
func clipArgument(args ...any) (any, error) { return clipText(args[0]), nil }

// scalarText implements string(value).
func scalarText(args ...any) (any, error) {
	switch args[0].(type) {
	case map[string]any, []any:
		return nil, errors.New("string needs a string, a number, a time, true or false")
	}
	return textOf(args[0]), nil
}

// join implements the operator + of a rule. If one side is a text, the other side is converted to a
// text. A missing value becomes the empty text.
func join(args ...any) (any, error) {
	_, leftIsText := args[0].(string)
	_, rightIsText := args[1].(string)
	if !leftIsText && !rightIsText {
		return runtime.Add(args[0], args[1]), nil
	}
	text := textOf(args[0]) + textOf(args[1])
	if len(text) > maxString {
		return nil, fmt.Errorf("a string would be longer than %d bytes", maxString)
	}
	return text, nil
}

func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		if !math.IsInf(v, 0) && math.Abs(v) < 1e15 {
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
	case interface{ Format(string) string }: // a time
		return v.Format("2006-01-02T15:04:05Z07:00")
	}
	return strings.TrimSpace(fmt.Sprint(v))
}

// Limits of a body.
const (
	maxBody       = 4 << 10 // bytes of source
	bodyNodes     = 200
	maxBodyOutput = 64 << 10 // bytes of JSON
)

// Body is a compiled body of a rule's action. It is safe for concurrent use.
type Body struct{ ruleProgram }

// CompileBody checks and compiles the body of a rule's action: an expression whose result is
// encoded as JSON.
//
//	{"text": device.name + ": " + round(values.temperature) + " °C", "raised": state == "raised"}
//
// The expression can read the same values as a condition, and rule {id, name}, state and alarm_id.
// Missing values are nil. The error has the line and the column.
func CompileBody(source string) (*Body, error) {
	rules := newRuleVisitor("body", true)
	rules.nameTypes["rule"] = types.Map{"id": types.String, "name": types.String}
	rules.nameTypes["state"], rules.nameTypes["alarm_id"] = types.String, types.String
	program, err := compileProgram(source, maxBody, bodyNodes, rules)
	if err != nil {
		return nil, err
	}
	return &Body{program}, nil
}

// JSON returns the body for an occurrence. extra holds rule, state and alarm_id. It returns an error
// if the result cannot be encoded as JSON or is longer than 64 KiB.
func (b *Body) JSON(s Subject, extra map[string]any) ([]byte, error) {
	v, err := b.run(&s, extra)
	if err != nil {
		return nil, err
	}
	if decoders.Elements(v, maxBodyOutput) < 0 {
		return nil, fmt.Errorf("the body holds more than %d values", maxBodyOutput)
	}
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("the body is not valid JSON: %w", err)
	}
	if buf.Len() > maxBodyOutput {
		return nil, fmt.Errorf("the body is longer than %d bytes", maxBodyOutput)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
