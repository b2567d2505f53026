package strict

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxKey is the largest part of the name of a field, in bytes, in the path of a mistake.
const maxKey = 60

func (d *decoder) structure(n *yaml.Node, v reflect.Value, p place) {
	if n.Kind != yaml.MappingNode {
		for i := range v.NumField() {
			if n.Kind == yaml.ScalarNode && v.Type().Field(i).Tag.Get("strict") == "scalar" {
				d.value(n, v.Field(i), place{p.path, p.depth + 1})
				return
			}
		}
		d.mistakes.Add(p.path, "expected a mapping, got %s", describeShape(n))
		return
	}
	fields := fieldsOf(v.Type())
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content) && len(d.mistakes) <= maxMistakes; i += 2 {
		key := n.Content[i].Value
		child := place{strings.TrimPrefix(p.path+"."+Clip(key, maxKey), "."), p.depth + 1}
		index, known := fields[key]
		switch {
		case !known || n.Content[i].Kind != yaml.ScalarNode:
			d.unknown(child.path, key, fields)
		case seen[key]:
			d.mistakes = append(d.mistakes, Mistake{child.path, "given twice"})
		default:
			d.value(asList(n.Content[i+1], v.Type().Field(index)), v.Field(index), child)
		}
		seen[key] = true
	}
}

// asList returns a single value of a list with the tag strict:"one" as a list.
func asList(n *yaml.Node, f reflect.StructField) *yaml.Node {
	single := n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null" || n.Kind == yaml.MappingNode
	if f.Tag.Get("strict") != "one" || !single {
		return n
	}
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{n}}
}

func (d *decoder) unknown(path, key string, fields map[string]int) {
	names := slices.Sorted(maps.Keys(fields))
	if nearest, ok := Nearest(key, names); ok {
		d.mistakes.Add(path, "unknown field, did you mean %q?", nearest)
		return
	}
	d.mistakes.Add(path, "unknown field, expected one of %s", strings.Join(names, ", "))
}

// Presetter is an element of a list that sets default values before it is decoded, so that a
// zero in the document is not replaced by a default.
type Presetter interface{ Preset() }

func (d *decoder) list(n *yaml.Node, v reflect.Value, p place) {
	if n.Kind != yaml.SequenceNode {
		d.mistakes.Add(p.path, "expected a list, got %s", describeShape(n))
		return
	}
	v.SetZero()
	if len(n.Content) == 0 {
		return
	}
	// The slice grows with its elements, because an alias can repeat a long list many times.
	for i, child := range n.Content {
		if d.stopped {
			return
		}
		entry := reflect.New(v.Type().Elem()).Elem()
		if p, ok := entry.Addr().Interface().(Presetter); ok {
			p.Preset()
		}
		path := p.path + "[" + strconv.Itoa(i) + "]"
		if child.ShortTag() == "!!null" {
			d.mistakes.Add(path, "expected a value, got nothing")
		}
		d.value(child, entry, place{path, p.depth + 1})
		v.Set(reflect.Append(v, entry))
	}
}

// fieldsOf returns the index of each field of a struct by its name in documents.
func fieldsOf(t reflect.Type) map[string]int {
	fields := make(map[string]int, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields[name] = i
		}
	}
	return fields
}
