package strict

import (
	"encoding"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxValue is the largest part of a value, in bytes, that a mistake quotes.
const maxValue = 40

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, p place) {
	if n.Kind != yaml.ScalarNode {
		d.mistakes.Add(p.path, "expected %s, got %s", describeKind(v.Kind()), describeShape(n))
		return
	}
	tag, valid := n.ShortTag(), false
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Value)
		if !isText(n) { // it may be a secret, and is not quoted
			d.mistakes.Add(p.path, "expected text in quotes")
		}
		return
	case reflect.Bool:
		v.SetBool(n.Value == "true")
		valid = tag == "!!bool" && (n.Value == "true" || n.Value == "false")
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(n.Value, 10, 64)
		v.SetInt(i)
		valid = tag == "!!int" && err == nil
	case reflect.Float64:
		f, ok := decimal(n.Value)
		v.SetFloat(f)
		valid = (tag == "!!int" || tag == "!!float") && ok
	}
	if !valid {
		d.mistakes.Add(p.path, "expected %s, got %q", describeKind(v.Kind()), Clip(n.Value, maxValue))
	}
}

// decimal parses a decimal number. Unlike strconv it refuses hexadecimal numbers, underscores,
// infinity, and numbers so small that they would become 0.
func decimal(text string) (f float64, ok bool) {
	if strings.Trim(text, "+-.0123456789eE") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	return f, err == nil && (f != 0 || !strings.ContainsAny(mantissa, "123456789"))
}

// isText reports whether a value is valid as text. Digits are valid, because telephone numbers
// are usually not quoted; they keep their leading zeros.
func isText(n *yaml.Node) bool {
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return utf8.ValidString(n.Value)
	case "!!int":
		return strings.Trim(strings.TrimPrefix(n.Value, "+"), "0123456789") == ""
	}
	return false
}

// text sets a value whose type has its own parser.
func (d *decoder) text(n *yaml.Node, v reflect.Value, p place) {
	if n.Kind != yaml.ScalarNode {
		d.mistakes.Add(p.path, "expected a single value, got %s", describeShape(n))
		return
	}
	var err error
	if parse, ok := d.opts.Types[v.Type()]; ok {
		var parsed any
		if parsed, err = parse(n.Value); err == nil {
			v.Set(reflect.ValueOf(parsed))
		}
	} else if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		err = u.UnmarshalText([]byte(n.Value))
	} else {
		var duration time.Duration
		duration, err = ParseDuration(n.Value)
		v.SetInt(int64(duration))
	}
	if err != nil {
		d.mistakes.Add(p.path, "%s, got %q", err, Clip(n.Value, maxValue))
	}
}

// ParseDuration parses a duration in Go's format, such as 90s or 2h30m.
func ParseDuration(text string) (time.Duration, error) {
	duration, err := time.ParseDuration(text)
	if err != nil {
		return 0, errors.New("expected a duration such as 90s or 2h30m")
	}
	return duration, nil
}

// textNode returns the node that a text has in a document whose field has the type t.
func textNode(text string, t reflect.Type) *yaml.Node {
	switch {
	case t.Kind() == reflect.Slice:
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for entry := range strings.SplitSeq(text, ",") {
			list.Content = append(list.Content, textNode(strings.TrimSpace(entry), t.Elem()))
		}
		return list
	case t.Kind() == reflect.Bool:
		return scalar("!!bool", text)
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int64:
		return scalar("!!int", text)
	case t.Kind() == reflect.Float64:
		return scalar("!!float", text)
	}
	return scalar("!!str", text)
}

func describeKind(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	}
	return "text"
}

// describeShape describes a value without quoting it: it may be a secret in the wrong place.
func describeShape(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	return "a single value"
}

// Clip shortens a text to maxBytes and an ellipsis.
func Clip(s string, maxBytes int) string {
	if len(s) <= maxBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxBytes], "") + "…"
}
