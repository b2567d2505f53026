package strict

import (
	"encoding"
	"reflect"
	"time"

	"go.yaml.in/yaml/v3"
)

// Options limits a document and adds parsers of types.
type Options struct {
	MaxBytes int // of the document; default 4 MiB
	MaxNodes int // values; default 500,000
	// Types has parsers of types that do not implement encoding.TextUnmarshaler. The error of a
	// parser is the expected value: "expected a time zone such as Europe/London".
	Types map[reflect.Type]func(text string) (any, error)
}

const (
	maxDepth  = 32     // of nesting; the documents of this project need 8
	maxShared = 20_000 // values reached through aliases, each of which may repeat many values
)

func (o Options) withDefaults() Options {
	if o.MaxBytes == 0 {
		o.MaxBytes = 4 << 20
	}
	if o.MaxNodes == 0 {
		o.MaxNodes = 500_000
	}
	return o
}

// Decode reads one YAML or JSON document into the struct that value points to, and returns
// all mistakes. Fields that are missing or null keep their values. An empty document changes
// nothing.
func Decode(data []byte, value any, o Options) Mistakes {
	o = o.withDefaults()
	if len(data) > o.MaxBytes {
		return Mistakes{{Text: "expected a smaller document"}}
	}
	root, err := parse(data)
	if err != nil {
		return Mistakes{{Text: err.Error()}}
	}
	d := decoder{opts: o, remaining: o.MaxNodes, shared: maxShared}
	if root != nil {
		d.value(root, reflect.ValueOf(value).Elem(), place{})
	}
	return d.mistakes
}

// Text sets the field that value points to from a text, such as that of an environment
// variable. The elements of a list are separated by commas. The paths of the mistakes begin at
// the field.
func Text(text string, value any, o Options) Mistakes {
	v := reflect.ValueOf(value).Elem()
	d := decoder{opts: o.withDefaults(), remaining: len(text) + 2, shared: maxShared}
	d.value(textNode(text, v.Type()), v, place{})
	return d.mistakes
}

type decoder struct {
	opts      Options
	remaining int // values that may still be visited
	shared    int // values that may still be visited through aliases
	aliases   int // that contain the current value
	stopped   bool
	mistakes  Mistakes
}

// place is the position of a value in the document.
type place struct {
	path  string
	depth int
}

func (d *decoder) value(n *yaml.Node, v reflect.Value, p place) {
	if !d.enter(p) {
		return
	}
	if n.Kind == yaml.AliasNode {
		d.aliases++
		d.value(n.Alias, v, place{p.path, p.depth + 1})
		d.aliases--
		return
	}
	if n.ShortTag() == "!!null" {
		return
	}
	switch {
	case d.hasParser(v):
		d.text(n, v, p)
	case v.Kind() == reflect.Pointer:
		target := reflect.New(v.Type().Elem())
		d.value(n, target.Elem(), place{p.path, p.depth + 1})
		v.Set(target)
	case v.Kind() == reflect.Struct:
		d.structure(n, v, p)
	case v.Kind() == reflect.Slice:
		d.list(n, v, p)
	default:
		d.scalar(n, v, p)
	}
}

// enter counts a value against the limits, and reports whether it may be visited.
func (d *decoder) enter(p place) bool {
	d.remaining--
	if d.stopped || len(d.mistakes) > maxMistakes {
		return false
	}
	if d.aliases > 0 {
		d.shared--
	}
	if p.depth <= maxDepth && d.remaining >= 0 && d.shared >= 0 {
		return true
	}
	d.stopped = true
	d.mistakes = append(d.mistakes, Mistake{p.path, "expected a smaller document: too deep, or aliases that multiply"})
	return false
}

// hasParser reports whether a type has its own parser of texts.
func (d *decoder) hasParser(v reflect.Value) bool {
	if _, ok := d.opts.Types[v.Type()]; ok || v.Type() == reflect.TypeFor[time.Duration]() {
		return true
	}
	return reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}
