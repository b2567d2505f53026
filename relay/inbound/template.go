package inbound

import "github.com/penstock/penstock/relay/template"

// Template is a relay's endpoint, compiled. It is read-only.
type Template struct {
	url    *template.Template
	values map[string]func(view) string
}

// CompileURL reads an endpoint of a kind of relay; see template.Compile.
func CompileURL(k Kind, raw string) (*Template, error) {
	t := &Template{values: make(map[string]func(view) string)}
	var names []string
	for _, p := range placeholders(k) {
		names = append(names, p.name)
		t.values[p.name] = p.value
	}
	var err error
	t.url, err = template.Compile(raw, names)
	return t, err
}

// Sample returns the URL with a sample in the place of every placeholder, for
// checks of where it leads.
func (t *Template) Sample() string { return t.url.Sample() }

// expand replaces every placeholder by its value, escaped.
func (t *Template) expand(v view) string {
	return t.url.Expand(func(name string) string { return t.values[name](v) })
}
