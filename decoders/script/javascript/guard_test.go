package javascript

import (
	"maps"
	"slices"
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

// A codec gets the guards of what it can reach, by syntax as well as by name.
func TestSyntaxBringsItsGuards(t *testing.T) {
	for name, tc := range map[string]struct {
		source string
		want   []string
	}{
		"a loop":                     {"for (var i = 0; i < 3; i++) {}", nil},
		"for of":                     {"for (const x of y) {}", []string{walking}},
		"spread in a call":           {"f(...y)", []string{walking}},
		"spread in a list":           {"z = [...y]", []string{walking}},
		"a pattern in a declaration": {"var [a, b] = y", []string{walking}},
		"a pattern in an assignment": {"[a, b] = y", []string{walking}},
		"a pattern in a parameter":   {"function f([a]) {}", []string{walking}},
		"a pattern in a pattern":     {"var {a: [b]} = y", []string{walking}},
		"yield of a list":            {"function* f() { yield* y }", []string{walking}},
		"yield":                      {"function* f() { yield y }", nil},
		"a set":                      {"new Set(y)", []string{walking}},
		"a member":                   {"y['next']()", []string{walking}},
		"a name with an escape":      {"new \\u0053et(y)", []string{walking}},
		"catch":                      {"try { f() } catch (e) { g(e) }", []string{catching}},
		"finally":                    {"try { f() } finally { g() }", nil},
		"an async function":          {"async function f() {}", []string{catching}},
		"an async arrow function":    {"f = async () => 1", []string{catching}},
		"an error":                   {"f(new RangeError(y))", []string{catching}},
		"a promise":                  {"Promise.reject(y)", []string{catching, walking}},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := parse(tc.source)
			relaytest.NoError(t, err)
			var got []string
			for _, guard := range slices.Sorted(maps.Keys(m.names)) {
				if m.names[guard] && (guard == walking || guard == catching) {
					got = append(got, guard)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
