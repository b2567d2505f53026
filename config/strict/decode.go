package strict

import (
	"encoding"
	"reflect"
	"time"

	"go.yaml.in/yaml/v3"
)

// Options bounds a document and teaches the decoder further types.
type Options struct {
	MaxBytes int // of the document; default 4 MiB
	MaxNodes int // values; default 500,000. At most 20,000 may come from aliases
	// Types parses the text of a type that is none of Go's own kinds. Its error
	// says what was expected.
	Types map[reflect.Type]func(text string) (any, error)
}

const (
	maxDepth  = 32     // of nesting; ours needs 7
	maxShared = 20_000 // values reached through aliases, which multiply
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

// Decode reads one YAML or JSON document into out, a pointer to a struct, and
// returns all mistakes. What the document does not name, or gives as null,
// keeps the value that out had. An empty document changes nothing.
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

// Text sets out, a pointer to a field, from a setting's text such as an
// environment variable's. A list's entries are separated by commas. It returns
// what was expected, with an empty path.
func Text(text string, value any, o Options) Mistakes {
	v := reflect.ValueOf(value).Elem()
	d := decoder{opts: o.withDefaults(), remaining: len(text) + 2, shared: maxShared}
	d.value(textNode(text, v.Type()), v, place{})
	return d.mistakes
}

type decoder struct {
	opts      Options
	remaining int // values that may still be visited
	shared    int // of them through aliases
	aliases   int // that the current value stands in
	stopped   bool
	mistakes  Mistakes
}

// place is the place of a value in the document.
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
	case d.special(v):
		d.text(n, v, p)
	case v.Kind() == reflect.Pointer:
		fresh := reflect.New(v.Type().Elem())
		d.value(n, fresh.Elem(), place{p.path, p.depth + 1})
		v.Set(fresh)
	case v.Kind() == reflect.Struct:
		d.structure(n, v, p)
	case v.Kind() == reflect.Slice:
		d.list(n, v, p)
	default:
		d.scalar(n, v, p)
	}
}

// enter counts a node against the bounds, so that aliases cannot multiply.
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

// special reports whether a type is read from text by its own parser.
func (d *decoder) special(v reflect.Value) bool {
	if _, ok := d.opts.Types[v.Type()]; ok || v.Type() == reflect.TypeFor[time.Duration]() {
		return true
	}
	return reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}
