package condition

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/expr-lang/expr/types"
	"github.com/penstock/penstock/decoders"
)

// Limits of a body.
const (
	maxBody       = 4 << 10 // bytes of source
	bodyNodes     = 200
	maxBodyOutput = 64 << 10 // bytes of JSON
)

// Body is a compiled body of a rule's action. It is safe for concurrent use.
type Body struct{ ruleProgram }

// CompileBody checks and compiles the body of a rule's action: one expression
// whose result is written as JSON.
//
//	{"text": device.name + ": " + round(values.temperature) + " °C", "raised": state == "raised"}
//
// It sees what a condition sees, and rule {id, name}, state and alarm_id. A value
// that is missing is nil. The error has the line and the column.
func CompileBody(source string) (*Body, error) {
	rules := newRuleVisitor("body", true)
	rules.known["rule"] = types.Map{"id": types.String, "name": types.String}
	rules.known["state"], rules.known["alarm_id"] = types.String, types.String
	program, err := compileProgram(source, maxBody, bodyNodes, rules)
	if err != nil {
		return nil, err
	}
	return &Body{program}, nil
}

// JSON returns the body of an occurrence. extra holds rule, state and alarm_id.
// A result that JSON cannot hold, or longer than 64 KiB, is an error.
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
		return nil, fmt.Errorf("the body is no JSON: %w", err)
	}
	if buf.Len() > maxBodyOutput {
		return nil, fmt.Errorf("the body is longer than %d bytes", maxBodyOutput)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
