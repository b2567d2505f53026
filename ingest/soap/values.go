package soap

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// values has the parsed elements of a request by name. A value is a string, int64, []byte,
// time.Time or values, or a []any of these if the element may be repeated. Missing elements have
// no entry.
type values map[string]any

func (v values) text(name string) string { s, _ := v[name].(string); return s }

func (v values) number(name string) int64 { n, _ := v[name].(int64); return n }

func (v values) octets(name string) []byte { b, _ := v[name].([]byte); return b }

func (v values) timestamp(name string) time.Time { t, _ := v[name].(time.Time); return t }

func (v values) child(name string) values { c, _ := v[name].(values); return c }

func (v values) texts(name string) (texts []string) {
	entries, _ := v[name].([]any)
	for _, entry := range entries {
		s, _ := entry.(string)
		texts = append(texts, s)
	}
	return texts
}

// maxMistakes is the largest number of mistakes in an answer.
const maxMistakes = 5

// mistakes are the mistakes of a request, each with the path and the offset of its element.
type mistakes []string

func (m *mistakes) add(n *node, path, format string, args ...any) {
	*m = append(*m, fmt.Sprintf("%s: ", path)+fmt.Sprintf(format, args...)+fmt.Sprintf(" (byte %d)", n.offset))
}

// String returns the first maxMistakes mistakes.
func (m mistakes) String() string {
	if omitted := len(m) - maxMistakes; omitted > 0 {
		return strings.Join(m[:maxMistakes], "; ") + fmt.Sprintf("; and %d more", omitted)
	}
	return strings.Join(m, "; ")
}

// decode reads the described children of an element, in any order. path is the path of the
// element with a dot at the end; "" for a request.
func decode(described []element, parent *node, path string, m *mistakes) values {
	decoded := make(values)
	if strings.Trim(parent.text, " \t\r\n") != "" {
		place := strings.TrimSuffix(path, ".")
		if path == "" { // a request
			place = parent.name.Local
		}
		m.add(parent, place, "expected elements, got text")
	}
	count := make(map[string]int)
	for _, n := range parent.children {
		i := slices.IndexFunc(described, func(e element) bool {
			return e.name == n.name.Local && (n.name.Space == Namespace || n.name.Space == "")
		})
		if i < 0 {
			m.add(n, path+quoteClipped(n.name.Local), "there is no such element here")
			continue
		}
		e := described[i]
		count[e.name]++
		e.read(n, path, count[e.name], decoded, m)
	}
	for _, e := range described {
		if !e.optional && count[e.name] == 0 {
			m.add(parent, path+e.name, "is required")
		}
	}
	return decoded
}

// read adds the value of the nth element of its name.
func (e element) read(n *node, path string, nth int, decoded values, m *mistakes) {
	path += e.name
	if e.maxCount() > 1 {
		path += fmt.Sprintf("[%d]", nth-1)
	}
	switch {
	case nth == e.maxCount()+1 && e.maxCount() > 1:
		m.add(n, path, "expected at most %d", e.maxCount())
		return
	case nth > e.maxCount() && e.maxCount() > 1:
		return // the first element above the limit has been reported
	case nth > e.maxCount():
		m.add(n, path, "is given twice")
		return
	}
	v, present := e.value(n, path, m)
	switch {
	case !present:
	case e.maxCount() > 1:
		entries, _ := decoded[e.name].([]any)
		decoded[e.name] = append(entries, v)
	default:
		decoded[e.name] = v
	}
}

// value parses an element. An empty optional element is missing.
func (e element) value(n *node, path string, m *mistakes) (v any, present bool) {
	isEmpty := len(n.children) == 0 && strings.Trim(n.text, " \t\r\n") == ""
	switch {
	case isEmpty && e.optional:
		return nil, false
	case e.children != nil:
		return decode(e.children, n, path+".", m), true
	case len(n.children) > 0:
		m.add(n, path, "expected text, got an element")
		return nil, false
	case isEmpty && !e.kind.mayBeEmpty && n.text == "":
		m.add(n, path, "is required")
		return nil, false
	}
	v, err := e.kind.read(n.text)
	if err != nil {
		m.add(n, path, "%s", err)
		return nil, false
	}
	return v, true
}

// pathsOf returns the paths of elements by the names of their parameters.
func pathsOf(described []element, path string) map[string]string {
	paths := make(map[string]string)
	for _, e := range described {
		if e.param != "" {
			paths[e.param] = path + e.name
		}
		maps.Copy(paths, pathsOf(e.children, path+e.name+"."))
	}
	return paths
}
